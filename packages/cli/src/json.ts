/** Whether a value is an object with members: neither null nor an array. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/**
 * The JSON value of these bytes, or `undefined` if they are not UTF-8 JSON or have a duplicate member. Two parsers
 * could read different values from duplicate members. Source: RFC 7493 (I-JSON) section 2.3.
 */
export function readJson(bytes: Uint8Array): unknown {
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
    let read = 0
    const value: unknown = JSON.parse(text, (_, member: unknown) => {
      if (isRecord(member)) read += Object.keys(member).length
      return member
    })
    return read === membersWritten(text) ? value : undefined
  } catch {
    return undefined
  }
}

/** The number of member names in valid JSON text: strings followed by a colon. */
function membersWritten(text: string): number {
  let written = 0
  let end = 0
  for (let open = text.indexOf('"'); open !== -1; open = text.indexOf('"', end)) {
    end = open + 1
    while (text[end] !== '"') end += text[end] === '\\' ? 2 : 1
    do end += 1
    while (isSpace(text[end]))
    if (text[end] === ':') written += 1
  }
  return written
}

function isSpace(character: string | undefined): boolean {
  return character === ' ' || character === '\n' || character === '\r' || character === '\t'
}
