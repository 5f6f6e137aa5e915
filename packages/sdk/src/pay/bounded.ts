/**
 * All bytes of a stream, or `too-large` as soon as they are more than `bytesMax`. Cancelling the rest is not waited for: half of a cloned
 * body is cancelled only when the other half is, too.
 */
export async function readBytes(
  stream: ReadableStream<Uint8Array>,
  bytesMax: number,
): Promise<Uint8Array<ArrayBuffer> | 'too-large'> {
  const chunks: Uint8Array<ArrayBuffer>[] = []
  let bytes = 0
  const reader = stream.getReader()
  for (let read = await reader.read(); !read.done; read = await reader.read()) {
    bytes += read.value.length
    if (bytes > bytesMax) {
      reader.cancel().catch(() => {})
      return 'too-large'
    }
    chunks.push(new Uint8Array(read.value))
  }
  return new Uint8Array(await new Blob(chunks).arrayBuffer())
}

/** Lets go of a body that nobody will read, so that its connection is free. */
export function discard(response: Response | undefined): void {
  response?.body?.cancel().catch(() => {})
}
