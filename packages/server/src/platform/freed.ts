/** Smaller chunks often share their memory with others, and cost little while they wait for the collector. */
const freedBytesMin = 16_384

/**
 * A content whose chunks are given back as soon as the next one is asked for: the collector comes late for memory that is not its
 * own, and a large content would hold a hundred megabytes that nobody needs. Whoever reads must be done with a chunk before asking
 * on. A chunk that shares its memory with another is left alone.
 */
export async function* freed(content: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  for await (const chunk of content) {
    const { buffer, byteLength } = chunk
    yield chunk
    if (buffer instanceof ArrayBuffer && byteLength >= freedBytesMin && byteLength === buffer.byteLength)
      buffer.transfer(0)
  }
}
