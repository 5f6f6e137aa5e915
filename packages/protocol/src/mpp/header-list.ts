/**
 * Returns the end of the list element that begins at `from`: the next comma outside a quoted-string, or the end of the
 * text (RFC 9110 section 5.6.1). A quoted-string without a closing quote extends to the end of the text.
 */
export function endOfElement(text: string, from: number): number {
  let at = from
  while (at < text.length && text[at] !== ',') {
    at = text[at] === '"' ? endOfQuoted(text, at + 1) + 1 : at + 1
  }
  return Math.min(at, text.length)
}

/**
 * Returns the index of the closing quote of the quoted-string that begins at `from`, or the text's length if there is
 * none.
 */
export function endOfQuoted(text: string, from: number): number {
  let at = from
  while (at < text.length && text[at] !== '"') at += text[at] === '\\' ? 2 : 1
  return Math.min(at, text.length)
}

/**
 * Splits a comma-separated header value into its elements, without surrounding white space and without empty elements.
 */
export function elementsOf(text: string): string[] {
  const elements: string[] = []
  for (let at = 0; at < text.length; ) {
    const end = endOfElement(text, at)
    const element = text.slice(at, end).trim()
    if (element !== '') elements.push(element)
    at = end + 1
  }
  return elements
}
