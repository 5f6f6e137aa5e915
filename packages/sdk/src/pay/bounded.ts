import { type ChunkLimits, collectBytes } from '@purser/protocol'

/**
 * All bytes of a stream, or `too-large` as soon as it exceeds the limits. Cancels the rest without waiting, because a
 * cloned body is canceled only once both halves are. Throws the signal's reason when it aborts.
 */
export async function readBytes(
  stream: ReadableStream<Uint8Array>,
  limits: ChunkLimits,
  signal?: AbortSignal,
): Promise<Uint8Array<ArrayBuffer> | 'too-large'> {
  const collected = collectBytes(limits)
  const reader = stream.getReader()
  signal?.addEventListener('abort', () => reader.cancel().catch(() => {}), { once: true })
  for (let read = await reader.read(); !read.done; read = await reader.read()) {
    if (collected.take(read.value) === 'taken') continue
    reader.cancel().catch(() => {})
    return 'too-large'
  }
  signal?.throwIfAborted()
  return collected.bytes()
}

/** Cancels an unread body, so that its connection is freed. */
export function discard(response: Response | undefined): void {
  response?.body?.cancel().catch(() => {})
}
