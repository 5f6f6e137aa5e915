import { finished, type Readable, Transform } from 'node:stream'
import { failPlatform, Problem } from '../../../platform/errors.ts'
import type { StreamRequest } from '../../../platform/operation.ts'
import { type ClaimedDigest, readContentDigest } from './digest.ts'
import { fail } from './errors.ts'
import { createFormParser, type PartHeader } from './form-parser.ts'

/** The one file of a form while it is received; `claimed` are the digests of its own part. */
export interface FormFile {
  readonly name: string
  readonly mimeType: string
  readonly claimed: readonly ClaimedDigest[]
  readonly content: Readable
}

const boundaryPattern = /^multipart\/form-data[ \t]*;(?:.*;)?[ \t]*boundary=(?:"([^"\r\n]{1,70})"|([^\s";,]{1,70}))/i

/**
 * Reads a form with the one field `file`, and returns the result of `take`. The content that `take` reads ends when the whole body has arrived and
 * is a complete form. On any fault this also waits for `take` to end, so that its work is undone.
 */
export async function readForm<T>(request: StreamRequest, take: (file: FormFile) => Promise<T>): Promise<T> {
  const { stream } = request
  if (stream === undefined) throw new Error('the body was not given as a stream')
  const ended = Promise.withResolvers<void>()
  let taken: Promise<T> | undefined
  const form = createFormParser(boundaryOf(request), {
    onPart(header) {
      const file = readPart(header)
      if (taken !== undefined) throw faultOf('/file', 'must be one file')
      taken = take({ ...file, content })
      taken.catch(ended.reject)
    },
    onContent: (piece) => content.push(piece),
    malformed: () => fail('malformed-multipart'),
  })
  const refuse = (fault: Error): void => {
    ended.reject(fault)
    content.destroy(fault)
  }
  const parse = (step: () => void, done: () => void): void => {
    try {
      step()
      done()
    } catch (fault) {
      refuse(fault instanceof Error ? fault : new Error('a value that is not an Error was thrown', { cause: fault }))
    }
  }
  const content: Transform = new Transform({
    transform: (chunk, _encoding, done) => parse(() => form.take(chunk), done),
    flush: (done) =>
      parse(() => {
        form.end()
        if (taken === undefined) throw faultOf('/file', 'is missing')
      }, done),
  })
  content.on('error', ignore).on('end', ended.resolve)
  finished(stream, { writable: false }, (cause) => {
    if (cause) refuse(asProblem(cause))
  })
  try {
    stream.pipe(content)
    await ended.promise
    if (taken === undefined) throw new Error('a form ended without its file')
    return await taken
  } catch (fault) {
    stream.unpipe(content)
    content.destroy()
    await taken?.catch(ignore)
    throw fault
  }
}

const bytesReadAfterRefusalMax = 64 * 2 ** 20
const msReadAfterRefusalMax = 60_000

/**
 * Keeps reading for a while and discards the body after a refusal: a sender whose connection is closed instead would not read the
 * response. A sender that continues for longer is disconnected.
 */
export function readResponse(stream: Readable | undefined): void {
  if (stream === undefined) return
  let bytes = 0
  const patience = setTimeout(() => stream.destroy(), msReadAfterRefusalMax).unref()
  stream.on('error', ignore)
  stream.on('close', () => clearTimeout(patience))
  stream.on('data', (chunk: Uint8Array) => {
    bytes += chunk.byteLength
    if (bytes > bytesReadAfterRefusalMax) stream.destroy()
  })
  stream.resume()
}

function asProblem(cause: unknown): Problem {
  return cause instanceof Problem ? cause : failPlatform('bad-request', {}, cause)
}

function boundaryOf({ headers }: StreamRequest): string {
  const type = headers['content-type'] ?? ''
  if (!/^multipart\/form-data[ \t]*(;|$)/i.test(type))
    throw failPlatform('unsupported-media-type', {
      detail: 'Send the body as multipart/form-data with a field named file.',
    })
  const [, quoted, plain] = boundaryPattern.exec(type) ?? []
  const boundary = quoted ?? plain
  if (boundary === undefined) throw fail('malformed-multipart')
  return boundary
}

function readPart(header: PartHeader): Omit<FormFile, 'content'> {
  const disposition = utf8Of(header.get('content-disposition') ?? '')
  const field = parameterOf(disposition, 'name')
  if (!/^form-data[ \t]*;/i.test(disposition) || field === undefined) throw fail('malformed-multipart')
  if (field !== 'file') throw faultOf(`/${field.slice(0, 128)}`, 'is not a field of this request')
  const read = readFileName(parameterOf(disposition, 'filename'))
  if ('fault' in read) throw faultOf('/file', `must be a file with a name: the name ${read.fault}`)
  const claimed = readContentDigest(header.get('content-digest'))
  return { name: read.name, mimeType: readMimeType(header.get('content-type')), claimed }
}

/**
 * Reads a parameter as browsers and curl write it: quotes in a value as `%22` or `\"`, line breaks as `%0D` and `%0A`, any other
 * character unchanged. Source: WHATWG HTML section 4.10.21.8.
 */
function parameterOf(disposition: string, name: string): string | undefined {
  const [, quoted, plain] =
    new RegExp(`;[ \\t]*${name}=(?:"((?:[^"\\\\]|\\\\.)*)"|([^\\s";]+))`, 'i').exec(disposition) ?? []
  return quoted?.replaceAll('\\"', '"').replaceAll(/%(22|0d|0a)/gi, decodeURIComponent) ?? plain
}

/** The parser returns one character per byte. */
function utf8Of(bytes: string): string {
  return Buffer.from(bytes, 'latin1').toString('utf8')
}

function faultOf(path: string, message: string): Error {
  return failPlatform('validation-error', { errors: [{ path, message }] })
}

function ignore(): void {}

/** Most characters (Unicode code points) of a file's name. */
const nameLengthMax = 255
/** Most code units of which NFC makes one code point: three letters beyond the basic plane, as U+16128 of Gurung Khema. */
const unitsPerCharacterMax = 6

/** The reason why a text is not a valid file name; it follows "the file's name". */
export type NameFault = 'is missing' | 'is longer than 255 characters' | 'holds control characters'

/**
 * Returns the name under which a file is stored: the part after the last slash or backslash, normalized to NFC and otherwise
 * unchanged, in any script. Control characters are refused rather than removed. The name identifies nothing in the storage, so
 * that no name can reach another file. Its length is limited before it is normalized, because the time to sort combining marks grows with the square
 * of their number.
 */
export function readFileName(given: string | undefined): { readonly name: string } | { readonly fault: NameFault } {
  if (given !== undefined && /\p{Cc}/u.test(given)) return { fault: 'holds control characters' }
  const sent = given?.split(/[/\\]/).at(-1)?.toWellFormed().trim() ?? ''
  if (sent.length > nameLengthMax * unitsPerCharacterMax) return { fault: 'is longer than 255 characters' }
  const base = sent.normalize('NFC')
  if (base === '' || base === '.' || base === '..') return { fault: 'is missing' }
  return [...base].length > nameLengthMax ? { fault: 'is longer than 255 characters' } : { name: base }
}

/** Returns the media type of a part without parameters; `application/octet-stream` if it is missing or invalid. */
export function readMimeType(given: string | undefined): string {
  const type = given?.split(';')[0]?.trim().toLowerCase() ?? ''
  const isType = /^[a-z0-9][a-z0-9!#$&^_.+-]{0,63}\/[a-z0-9][a-z0-9!#$&^_.+-]{0,63}$/.test(type)
  return isType ? type : 'application/octet-stream'
}

/**
 * Returns a `Content-Disposition` with which a browser saves the file under its name and never displays it: the name in UTF-8,
 * and in ASCII for older clients. Bidirectional control characters are left out, since `exe.fdp` written backwards reads as a
 * document. Source: RFC 6266 section 4.3 and appendix D, RFC 8187 section 3.2.
 */
export function attachmentOf(name: string): string {
  const shown = name.replaceAll(/\p{Bidi_Control}/gu, '')
  const ascii = shown.replaceAll(/[^\x20-\x7e]/gu, '_').replaceAll(/["\\%]/g, '_')
  const encoded = encodeURIComponent(shown).replaceAll(
    /['()*]/g,
    (mark) => `%${mark.charCodeAt(0).toString(16).toUpperCase()}`,
  )
  return `attachment; filename="${ascii}"; filename*=UTF-8''${encoded}`
}
