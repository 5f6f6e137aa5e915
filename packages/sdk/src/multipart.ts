import type { Upload } from './transport.ts'

/**
 * The content of a file to upload to a vault. A `ReadableStream` or an `AsyncIterable` is sent in chunks and never
 * buffered as a whole.
 */
export type FileSource = Blob | Uint8Array | ReadableStream<Uint8Array> | AsyncIterable<Uint8Array>

/** The name and type of a file. A `File` has its own. */
export interface FileNaming {
  readonly name?: string | undefined
  /** Default: `application/octet-stream`. */
  readonly mimeType?: string | undefined
}

/**
 * A form with one field `file` (RFC 7578). Names are encoded as browsers do: quotes and line breaks are
 * percent-encoded, so that a name cannot end its header. Source: WHATWG HTML, section 4.10.21.8.
 */
export function fileForm(source: FileSource, naming: FileNaming): Upload {
  const boundary = `purser-${crypto.randomUUID()}`
  const [head, tail] = [headOf(boundary, nameOf(source, naming), typeOf(source, naming)), `\r\n--${boundary}--\r\n`]
  const contentType = `multipart/form-data; boundary=${boundary}`
  if (source instanceof Blob) return { contentType, body: new Blob([head, source, tail]) }
  if (source instanceof Uint8Array) return { contentType, body: new Blob([head, new Uint8Array(source), tail]) }
  const encoder = new TextEncoder()
  return { contentType, body: streamOf(parts(encoder.encode(head), source, encoder.encode(tail))) }
}

function headOf(boundary: string, name: string, mimeType: string): string {
  const disposition = `form-data; name="file"; filename="${name.replace(/["\r\n]/g, encodeURIComponent)}"`
  return `--${boundary}\r\nContent-Disposition: ${disposition}\r\nContent-Type: ${mimeType}\r\n\r\n`
}

function nameOf(source: FileSource, { name }: FileNaming): string {
  return name ?? (typeof File !== 'undefined' && source instanceof File ? source.name : 'file')
}

const octets = 'application/octet-stream'

function typeOf(source: FileSource, { mimeType }: FileNaming): string {
  const type = mimeType ?? (source instanceof Blob ? source.type : '')
  if (!/^[\x20-\x7e]*$/.test(type))
    throw new TypeError('mimeType contains characters that are not allowed in a header.')
  return type === '' ? octets : type
}

async function* parts(
  head: Uint8Array,
  source: ReadableStream<Uint8Array> | AsyncIterable<Uint8Array>,
  tail: Uint8Array,
): AsyncGenerator<Uint8Array> {
  yield head
  yield* joined(source instanceof ReadableStream ? chunksOf(source) : source)
  yield tail
}

const joinedBytes = 16_384
const joinedMs = 1_000

/** Joins small chunks, such as lines: each chunk costs the service as much as a thousand bytes. A chunk of a slow source leaves within a second. */
async function* joined(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const source = chunks[Symbol.asyncIterator]()
  let waiting: Uint8Array<ArrayBuffer>[] = []
  let bytes = 0
  let sendAt = 0
  const take = async (): Promise<Uint8Array> => {
    const all = new Uint8Array(await new Blob(waiting).arrayBuffer())
    waiting = []
    bytes = 0
    return all
  }
  let isDone = false
  try {
    while (!isDone) {
      const next = Promise.resolve(source.next())
      // The source may fail while this generator waits for its reader; the `await` below reports the failure.
      void next.catch(() => {})
      if (bytes > 0 && (Date.now() >= sendAt || (await isLate(next, sendAt - Date.now())))) yield await take()
      const { done, value } = await next
      isDone = done === true
      if (done === true) continue
      if (bytes === 0) sendAt = Date.now() + joinedMs
      waiting.push(new Uint8Array(value))
      bytes += value.length
      if (bytes >= joinedBytes) yield await take()
    }
    if (bytes > 0) yield await take()
  } finally {
    // Not every iterator of a caller returns a promise here.
    if (!isDone) void (async () => source.return?.())().catch(() => {})
  }
}

/** Returns whether a promise is still pending after that time. */
async function isLate(promise: Promise<unknown>, ms: number): Promise<boolean> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(true), ms)
  })
  const settled = promise.then(
    () => false,
    () => false,
  )
  try {
    return await Promise.race([settled, late])
  } finally {
    clearTimeout(timer)
  }
}

/** Some engines cannot iterate over a stream. */
export async function* chunksOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  const reader = stream.getReader()
  try {
    for (let read = await reader.read(); !read.done; read = await reader.read()) yield read.value
  } finally {
    reader.cancel().catch(() => {})
  }
}

/** Pulls one chunk when there is capacity, so that a fast source waits for a slow network. */
function streamOf(pieces: AsyncGenerator<Uint8Array>): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>(
    {
      pull: async (controller) => {
        const { done, value } = await pieces.next()
        if (done === true) controller.close()
        else controller.enqueue(value)
      },
      cancel: async () => void (await pieces.return(undefined)),
    },
    { highWaterMark: 0 },
  )
}
