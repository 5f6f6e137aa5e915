import { hash } from 'node:crypto'

const style = `
:root{color-scheme:light dark;--ink:#1a1a1a;--paper:#fff;--faint:#595959;--box:#f3f3f3;--line:#d5d5d5;--link:#0645ad}
@media (prefers-color-scheme:dark){:root{--ink:#e8e8e8;--paper:#16181b;--faint:#a8a8a8;--box:#23262b;--line:#3b3f45;--link:#8ab4f8}}
*{box-sizing:border-box}
body{font:16px/1.5 system-ui,sans-serif;max-width:64rem;margin:0 auto;padding:1rem;color:var(--ink);background:var(--paper)}
a{color:var(--link)}
:focus-visible{outline:3px solid var(--link);outline-offset:2px}
.skip{position:absolute;left:-999rem}.skip:focus{position:static}
code,pre{font:.9em/1.5 ui-monospace,monospace;background:var(--box);border-radius:3px}
code{padding:.1em .3em;overflow-wrap:anywhere}
pre{padding:1em;overflow:auto}
h2{margin-top:2.5em;border-bottom:1px solid var(--line)}
section section{margin-top:2.5em;border-top:1px solid var(--line)}
h3{margin-bottom:.2em}h4{margin:1.2em 0 .3em}
nav ul{columns:18rem;padding-left:1.2em}
.scrolls{overflow-x:auto}
table{border-collapse:collapse;width:100%}
th,td{text-align:left;vertical-align:top;padding:.3em .8em .3em 0;border-bottom:1px solid var(--line)}
th[scope=row]{font-weight:normal;white-space:nowrap}
small{color:var(--faint)}
.anchor{visibility:hidden;text-decoration:none;color:var(--faint)}:is(h2,h3,h4):hover .anchor,.anchor:focus{visibility:visible}
:target{scroll-margin-top:1rem}
pre code{padding:0;overflow-wrap:normal;font-size:1em}
dt{margin-top:.8em}dd{margin:0;color:var(--faint)}
.guide td:first-child{min-width:9rem}
.side h2{font-size:1em;margin:1.2em 0 .2em;border:0}.side ul{columns:auto;list-style:none;margin:0;padding:0}.side li{padding:.15em 0}
.side a{text-decoration:none}.side a:hover{text-decoration:underline}[aria-current]{font-weight:bold}
.contents{margin:1em 0;padding:.6em 1em;background:var(--box)}
@media (min-width:60rem){body:has(.guide){max-width:76rem}.guide{display:grid;grid-template-columns:15rem minmax(0,1fr);gap:3rem}
.side{grid-column:1;grid-row:1;position:sticky;top:1rem;align-self:start;max-height:calc(100vh - 2rem);overflow-y:auto}.guide main{grid-column:2}}
`

/** A page without scripts and external resources: its one style is allowed by its digest. */
export const htmlHeaders = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': `default-src 'none'; style-src 'sha256-${hash('sha256', style, 'base64')}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
  'referrer-policy': 'no-referrer',
}

/** A whole document around a body of HTML. */
export function page(title: string, body: string): string {
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>${escapeHtml(title)}</title><style>${style}</style></head>
<body>${body}</body>
</html>
`
}

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
