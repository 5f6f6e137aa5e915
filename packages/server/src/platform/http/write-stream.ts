import type { ServerResponse } from 'node:http'
import type { ReusedBufferStream } from '../reused-buffer-stream.ts'

interface Taken {
  readonly raw: ServerResponse
  hijack(): unknown
  getHeaders(): Readonly<Record<string, number | string | string[] | undefined>>
}

/** Writes the head of a response and takes it from the library, which writes nothing of it afterwards. */
export function takeOver(reply: Taken, { status }: { readonly status: number }): void {
  reply.hijack()
  reply.raw.writeHead(
    status,
    Object.entries(reply.getHeaders()).flatMap(([name, value]) => (value === undefined ? [] : [name, value])),
  )
}

/**
 * Writes a content to a response whose head is written, as fast as the caller reads, and ends it. Never rejects: if the caller disconnects
 * the rest is not read, and if the content fails the connection is cut, so that nobody takes a part for the whole, and `report` gets the
 * error.
 */
export async function writeStream(
  response: ServerResponse,
  content: ReusedBufferStream,
  report: (fault: unknown) => void,
): Promise<void> {
  const closed = new AbortController()
  let release = (): void => undefined
  const onClosed = (): void => {
    closed.abort(gone)
    release()
  }
  // A failed response is closed too; without a listener the failure would end the process.
  response.on('error', onClosed).once('close', onClosed)
  const take = async (bytes: Uint8Array): Promise<void> => {
    if (closed.signal.aborted || response.destroyed) throw gone
    await new Promise<void>((resolve) => {
      // The library may not complete a write on a connection that was cut meanwhile: `close` then does.
      release = resolve
      response.write(bytes, () => resolve())
    })
    if (closed.signal.aborted) throw gone
  }
  try {
    await content.writeTo(take, closed.signal)
    response.end()
  } catch (fault) {
    if (fault !== gone) report(fault)
    response.destroy()
  }
}

const gone = new Error('the caller disconnected')
