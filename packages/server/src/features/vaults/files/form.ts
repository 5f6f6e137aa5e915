import { finished, type Readable } from 'node:stream'
import { Dicer } from '@fastify/busboy'
import { z } from 'zod'
import { failPlatform } from '../../../platform/errors.ts'
import type { StreamRequest } from '../../../platform/operation.ts'
import { type ClaimedDigest, readContentDigest } from './digest.ts'
import { fail } from './errors.ts'
import { readFileName, readMimeType } from './name.ts'

/** The one file of a form, as it comes in; `claimed` is what its own part says of its digest. */
export interface FormFile {
  readonly name: string
  readonly mimeType: string
  readonly claimed: readonly ClaimedDigest[]
  readonly content: Readable
}

const partHeadersMax = 16
const boundaryPattern = /^multipart\/form-data[ \t]*;(?:.*;)?[ \t]*boundary=(?:"([^"\r\n]{1,70})"|([^\s";,]{1,70}))/i

/**
 * Reads a form whose one field is `file`, and answers what `take` made of it once the form has come to its proper end: until
 * then nothing that was taken counts. On any fault it waits for `take` to end too, so that what that had begun is taken back.
 * Source: RFC 7578.
 */
export async function readForm<T>(request: StreamRequest, take: (file: FormFile) => Promise<T>): Promise<T> {
  const { stream } = request
  if (stream === undefined) throw new Error('the body was not given as a stream')
  const form = new Dicer({ boundary: boundaryOf(request), maxHeaderPairs: partHeadersMax })
  const ended = Promise.withResolvers<void>()
  let content: Readable | undefined
  let taken: Promise<T> | undefined
  form.on('part', (part) => {
    part.on('error', ignore)
    part.on('header', (header) => {
      try {
        const file = readPart(header)
        if (taken !== undefined) throw faultOf('/file', 'must be one file')
        content = part
        taken = take({ ...file, content: part })
        taken.catch(ended.reject)
      } catch (fault) {
        part.resume()
        ended.reject(fault)
      }
    })
  })
  try {
    void whenRead(stream, form).then(ended.resolve, ended.reject)
    await ended.promise
    if (taken === undefined) throw faultOf('/file', 'is missing')
    return await taken
  } catch (fault) {
    stream.unpipe(form)
    content?.destroy(new Error('the form was refused or broke off'))
    await taken?.catch(ignore)
    throw fault
  }
}

/**
 * Both must end: the request's body, and the form in it, whose last delimiter may be missing. The form ends first, and a pipe whose
 * end has ended stands still: what follows the form is read and not heard.
 */
async function whenRead(stream: Readable, form: Dicer): Promise<void> {
  stream.pipe(form)
  const formEnd = new Promise<void>((resolve, reject) => {
    form.on('error', (cause) => reject(fail('malformed-multipart', {}, cause)))
    form.on('finish', () => {
      stream.resume()
      resolve()
    })
  })
  const streamEnd = new Promise<void>((resolve, reject) => {
    const end = (cause: unknown): void => (cause ? reject(failPlatform('bad-request', {}, cause)) : resolve())
    finished(stream, { writable: false }, end)
  })
  await Promise.all([formEnd, streamEnd])
}

const bytesReadAfterRefusalMax = 64 * 2 ** 20
const msReadAfterRefusalMax = 60_000

/**
 * Lets a sender who is refused in the middle go on for a while, unheard: one whose connection is cut instead never reads why. One
 * that goes on for longer is cut.
 */
export function hearOut(stream: Readable | undefined): void {
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

const PartHeader = z.record(z.string(), z.array(z.string()))

function readPart(raw: unknown): Omit<FormFile, 'content'> {
  const header = PartHeader.parse({ ...Object(raw) })
  const disposition = utf8Of(header['content-disposition']?.[0] ?? '')
  const field = parameterOf(disposition, 'name')
  if (!/^form-data[ \t]*;/i.test(disposition) || field === undefined) throw fail('malformed-multipart')
  if (field !== 'file') throw faultOf(`/${field.slice(0, 128)}`, 'is not a field of this request')
  const read = readFileName(parameterOf(disposition, 'filename'))
  if ('fault' in read) throw faultOf('/file', `must be a file whose name is given: the name ${read.fault}`)
  const claimed = readContentDigest(header['content-digest']?.join(', '))
  return { name: read.name, mimeType: readMimeType(header['content-type']?.[0]), claimed }
}

/**
 * A parameter as browsers and curl write it: quotes in a value as `%22` or `\"`, line ends as `%0D` and `%0A`, any other
 * character as it is. Source: WHATWG HTML section 4.10.21.8.
 */
function parameterOf(disposition: string, name: string): string | undefined {
  const [, quoted, plain] =
    new RegExp(`;[ \\t]*${name}=(?:"((?:[^"\\\\]|\\\\.)*)"|([^\\s";]+))`, 'i').exec(disposition) ?? []
  return quoted?.replaceAll('\\"', '"').replaceAll(/%(22|0d|0a)/gi, decodeURIComponent) ?? plain
}

/** The parser gives each byte as a character of its own. */
function utf8Of(bytes: string): string {
  return Buffer.from(bytes, 'latin1').toString('utf8')
}

function faultOf(path: string, message: string): Error {
  return failPlatform('validation-error', { errors: [{ path, message }] })
}

function ignore(): void {}
