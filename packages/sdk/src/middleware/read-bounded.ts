import { collectBytes } from '@purser/protocol'

/**
 * The whole body of a response (null if it has none), or `too-large` as soon as it exceeds `bytesMax`. The rest is
 * not read.
 */
export async function readBounded(
  response: Response,
  bytesMax: number,
): Promise<Uint8Array<ArrayBuffer> | null | 'too-large'> {
  if (response.body === null) return null
  const collected = collectBytes({ bytesMax, tinyChunksMax: Number.POSITIVE_INFINITY })
  const reader = response.body.getReader()
  for (let read = await reader.read(); !read.done; read = await reader.read()) {
    if (collected.take(read.value) === 'taken') continue
    await reader.cancel()
    return 'too-large'
  }
  return collected.bytes()
}
