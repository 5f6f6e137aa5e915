/** Smaller chunks often share their memory with others, and cost little until they are collected. */
const freedBytesMin = 16_384

/**
 * Yields the chunks of a stream, and releases the memory of each one when the next is requested. V8 collects external memory late, so a large
 * file would otherwise occupy a hundred megabytes. A reader must be done with a chunk before it requests the next. A chunk that shares its
 * memory with another is not released.
 */
export async function* releaseChunks(content: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  for await (const chunk of content) {
    const { buffer, byteLength } = chunk
    yield chunk
    if (buffer instanceof ArrayBuffer && byteLength >= freedBytesMin && byteLength === buffer.byteLength)
      buffer.transfer(0)
  }
}
