/**
 * Where the list element that begins at `from` ends: at the next comma that no quoted-string holds, or at the end of the text
 * (RFC 9110 section 5.6.1). A string that is never closed holds everything behind it.
 */
export function endOfElement(text: string, from: number): number {
  let at = from
  while (at < text.length && text[at] !== ',') {
    at = text[at] === '"' ? endOfQuoted(text, at + 1) + 1 : at + 1
  }
  return Math.min(at, text.length)
}

/** Where the quoted-string whose first character is at `from` has its closing quote; the text's length when it has none. */
export function endOfQuoted(text: string, from: number): number {
  let at = from
  while (at < text.length && text[at] !== '"') at += text[at] === '\\' ? 2 : 1
  return Math.min(at, text.length)
}

/** The elements of a comma-separated header value, without the white space around them; empty ones are left out. */
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
