/**
 * The whole body of a response (null if it has none), or `too-large` as soon as it exceeds `bytesMax`. The rest is
 * not read.
 */
export async function readBounded(
  response: Response,
  bytesMax: number,
): Promise<Uint8Array<ArrayBuffer> | null | 'too-large'> {
  if (response.body === null) return null
  const chunks: Uint8Array[] = []
  let bytes = 0
  const reader = response.body.getReader()
  for (let read = await reader.read(); !read.done; read = await reader.read()) {
    bytes += read.value.length
    if (bytes > bytesMax) {
      await reader.cancel()
      return 'too-large'
    }
    chunks.push(read.value)
  }
  return joined(chunks, bytes)
}

function joined(chunks: readonly Uint8Array[], bytes: number): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(bytes)
  let offset = 0
  for (const chunk of chunks) {
    whole.set(chunk, offset)
    offset += chunk.length
  }
  return whole
}
