/** Smaller chunks often share their memory with others, and cost little until they are collected. */
const freedBytesMin = 16_384

/**
 * A stream whose chunks are freed as soon as the next one is requested: external memory is collected late, and a large file would otherwise
 * occupy a hundred megabytes. A reader must be done with a chunk before it requests the next. A chunk that shares its memory with another
 * is not freed.
 */
export async function* freed(content: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  for await (const chunk of content) {
    const { buffer, byteLength } = chunk
    yield chunk
    if (buffer instanceof ArrayBuffer && byteLength >= freedBytesMin && byteLength === buffer.byteLength)
      buffer.transfer(0)
  }
}
