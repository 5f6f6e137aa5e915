/** Escapes text for element content and quoted attributes. */
export function escapeHtml(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll("'", '&#39;')
}

/** Escapes the text of a description, with code between backquotes. */
export function prose(text: string): string {
  return escapeHtml(text).replaceAll(/`([^`]+)`/g, '<code>$1</code>')
}

export function code(text: string): string {
  return `<code>${escapeHtml(text)}</code>`
}

/** A table of HTML cells whose first column names the row; it scrolls by itself, also with the keyboard. */
export function table(label: string, head: readonly string[], rows: readonly (readonly string[])[]): string {
  if (rows.length === 0) return ''
  const heads = head.map((name) => `<th scope="col">${escapeHtml(name)}</th>`).join('')
  const lines = rows.map(
    ([first, ...rest]) => `<tr><th scope="row">${first}</th>${rest.map((cell) => `<td>${cell}</td>`).join('')}</tr>`,
  )
  return `<div class="scrolls" role="region" tabindex="0" aria-label="${escapeHtml(label)}"><table><thead><tr>${heads}</tr></thead><tbody>
${lines.join('\n')}
</tbody></table></div>`
}
