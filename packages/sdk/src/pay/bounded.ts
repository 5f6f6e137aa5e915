/**
 * All bytes of a stream, or `too-large` as soon as there are more than `bytesMax`. Does not wait for the cancellation
 * of the rest: one half of a cloned body is canceled only when the other half is, too.
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

/** Cancels an unread body, so that its connection is freed. */
export function discard(response: Response | undefined): void {
  response?.body?.cancel().catch(() => {})
}
