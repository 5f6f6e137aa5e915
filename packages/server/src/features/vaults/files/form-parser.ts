import { collectBytes } from '@purser/protocol'

/** Most bytes of a form beside the content of its file: what precedes and follows it, delimiters and headers. */
export const formBytesMax = 65_536

/** The fields of a part's header by their names in lower case, one character per byte. */
export type PartHeader = ReadonlyMap<string, string>

interface FormReader {
  /** Called for the first part, and for a second one, which has no content. */
  readonly onPart: (header: PartHeader) => void
  /** Called with the pieces of the first part's content. */
  readonly onContent: (piece: Uint8Array) => void
  /** The error for bytes that are no form. */
  readonly malformed: () => Error
}

/** Reads a form while it arrives. */
export interface FormParser {
  /** Throws if the bytes are no form, or if the form has too many bytes beside its content. */
  take(chunk: Buffer): void
  /** Throws unless the form is complete. */
  end(): void
}

/**
 * A parser of forms with one part. It keeps no more than the part's header and the beginning of a delimiter, so its work and its memory
 * depend on the bytes alone, whatever they are. Source: RFC 2046 section 5.1, RFC 7578.
 */
export function createFormParser(boundary: string, { onPart, onContent, malformed }: FormReader): FormParser {
  const delimiter = Buffer.from(`\r\n--${boundary}`, 'latin1')
  let bytesBeside = 0
  let parts = 0
  let state: (rest: Buffer) => Buffer | undefined

  const readHeader = (): typeof state => {
    const header = collectBytes({ bytesMax: formBytesMax, tinyChunksMax: Number.POSITIVE_INFINITY })
    const find = createSearch(blankLine, (piece) => {
      if (header.take(piece) !== 'taken') throw malformed()
    })
    return (bytes) => {
      const rest = find(bytes)
      if (rest === undefined) return undefined
      const fields = fieldsOf(Buffer.from(header.bytes()).toString('latin1'))
      if (fields === undefined) throw malformed()
      parts += 1
      onPart(fields)
      state = readContent()
      return rest
    }
  }
  const readContent = (): typeof state =>
    readUntilDelimiter((piece) => {
      bytesBeside -= piece.length
      if (parts === 1) onContent(piece)
    })
  /** Two dashes behind a delimiter end the form. */
  const readEnd = (): typeof state => {
    let first = Buffer.alloc(0)
    return (bytes) => {
      first = Buffer.concat([first, bytes])
      if (first.length < 2) return undefined
      state = first.subarray(0, 2).equals(dashes) ? ignoreRest : readHeader()
      return first
    }
  }
  const readUntilDelimiter = (onPiece: (piece: Uint8Array) => void): typeof state => {
    const find = createSearch(delimiter, onPiece)
    return (bytes) => {
      const rest = find(bytes)
      if (rest !== undefined) state = readEnd()
      return rest
    }
  }
  const ignoreRest = (): undefined => undefined

  // The first delimiter may stand at the beginning, without its line break.
  state = readUntilDelimiter(() => undefined)
  state(lineBreak)
  return {
    take(chunk) {
      bytesBeside += chunk.length
      for (let rest: Buffer | undefined = chunk; rest !== undefined; ) rest = state(rest)
      if (bytesBeside > formBytesMax) throw malformed()
    },
    end() {
      if (state !== ignoreRest) throw malformed()
    },
  }
}

const [lineBreak, blankLine, dashes] = [Buffer.from('\r\n'), Buffer.from('\r\n\r\n'), Buffer.from('--')]

/**
 * Finds a text in bytes that arrive in chunks. The function that it returns passes what stands before the text to `onPiece`, a chunk as one piece where
 * possible, and returns what follows it once it was found.
 */
function createSearch(text: Buffer, onPiece: (piece: Uint8Array) => void): (chunk: Buffer) => Buffer | undefined {
  /** The end of the bytes so far, if the text may begin with it. */
  let begun = Buffer.alloc(0)
  return (chunk) => {
    const bytes = begun.length === 0 ? chunk : Buffer.concat([begun, chunk])
    const at = bytes.indexOf(text)
    const end = at < 0 ? beginningOf(text, bytes) : at
    begun = at < 0 && end < bytes.length ? Buffer.from(bytes.subarray(end)) : Buffer.alloc(0)
    if (end > 0) onPiece(end === bytes.length ? bytes : bytes.subarray(0, end))
    return at < 0 ? undefined : bytes.subarray(at + text.length)
  }
}

/** Returns the place from which all bytes are the beginning of a text; their length if there is none. */
function beginningOf(text: Buffer, bytes: Buffer): number {
  const { length } = bytes
  for (let at = Math.max(0, length - text.length + 1); at < length; at += 1)
    if (bytes[at] === text[0] && bytes.subarray(at).equals(text.subarray(0, length - at))) return at
  return length
}

const fieldsMax = 16
/** No character of a line belongs to two neighbouring parts, so that the time depends on the length alone. */
const fieldPattern = /^([^\s:]+)[ \t]*:[ \t]*([^ \t\r\n][^\r\n]*)?$/

/** Returns the fields behind a delimiter; undefined if a line is none. Of fields with one name the values are joined. */
function fieldsOf(header: string): PartHeader | undefined {
  const [padding = '', ...lines] = header.replaceAll(/\r\n[ \t]+/g, ' ').split('\r\n', fieldsMax + 2)
  if (!/^[ \t]*$/.test(padding) || lines.length > fieldsMax) return undefined
  const fields = new Map<string, string>()
  for (const line of lines) {
    const [, name = '', value = ''] = fieldPattern.exec(line) ?? []
    if (name === '') return undefined
    const known = fields.get(name.toLowerCase())
    fields.set(name.toLowerCase(), known === undefined ? value : `${known}, ${value}`)
  }
  return fields
}
