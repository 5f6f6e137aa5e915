/** Limits of a body that arrives in chunks. */
export interface ChunkLimits {
  /** Most bytes of the body. */
  readonly bytesMax: number
  /** Most chunks of a body whose chunks have fewer than 64 bytes on average; a longer chunk costs little more than its bytes. */
  readonly tinyChunksMax: number
}

/** `too-large`: the body has more than `bytesMax`. `too-many-chunks`: it has too many chunks for its length. */
export type TakenChunk = 'taken' | 'too-large' | 'too-many-chunks'

/** Counts the chunks of a body. */
export interface ChunkCount {
  /** Counts a chunk. Returns whether the body still has an acceptable number of chunks. */
  take(length: number): boolean
}

/** The beginning of a body, in one piece of memory. */
export interface CollectedBytes {
  /** Copies a chunk. Of a chunk beyond `bytesMax` it copies what fits. */
  take(chunk: Uint8Array): TakenChunk
  /** Returns the copied bytes. They share the memory of the body, so the next `take` may write behind them. */
  bytes(): Uint8Array<ArrayBuffer>
}

const tinyChunkBytes = 64
const firstBytes = 4_096

/**
 * Counts the chunks of a body. A sender may announce each byte as a chunk of its own, which costs its receiver a hundred times as much memory and
 * time as the byte. No usual sender does so for thousands of bytes.
 *
 * @example
 * countChunks(1).take(1) // true
 */
export function countChunks(tinyChunksMax: number): ChunkCount {
  let chunks = 0
  let bytes = 0
  return {
    take(length) {
      chunks += 1
      bytes += length
      return chunks <= tinyChunksMax || bytes >= chunks * tinyChunkBytes
    },
  }
}

/**
 * Collects a body that arrives in chunks in one buffer, which doubles up to `bytesMax`: its memory is that of the bytes, whatever the number of
 * chunks. `allocate` makes a buffer of a length in bytes.
 *
 * @example
 * collectBytes({ bytesMax: 1, tinyChunksMax: 9 }).take(new Uint8Array(2)) // 'too-large'
 */
export function collectBytes(
  { bytesMax, tinyChunksMax }: ChunkLimits,
  allocate: (length: number) => Uint8Array<ArrayBuffer> = (length) => new Uint8Array(length),
): CollectedBytes {
  const count = countChunks(tinyChunksMax)
  let collected = allocate(0)
  let length = 0
  const grow = (needed: number): void => {
    if (needed <= collected.length) return
    const larger = allocate(Math.min(bytesMax, Math.max(needed, 2 * collected.length, firstBytes)))
    larger.set(collected.subarray(0, length))
    collected = larger
  }
  return {
    take(chunk) {
      if (!count.take(chunk.length)) return 'too-many-chunks'
      const fits = Math.min(chunk.length, bytesMax - length)
      grow(length + fits)
      collected.set(fits === chunk.length ? chunk : chunk.subarray(0, fits), length)
      length += fits
      return fits === chunk.length ? 'taken' : 'too-large'
    },
    bytes: () => collected.subarray(0, length),
  }
}
