import { expect, test } from 'vitest'
import { readBytes } from './bounded.ts'

/** A stream that sends a body byte by byte. */
function bytesOf(count: number): ReadableStream<Uint8Array> {
  let sent = 0
  return new ReadableStream({
    pull(controller) {
      if (sent === count) controller.close()
      else controller.enqueue(new Uint8Array([sent % 256]))
      sent += 1
    },
  })
}

test('a body in few chunks is read, and one in too many tiny chunks is not', async () => {
  const limits = { bytesMax: 262_144, tinyChunksMax: 1_000 }
  const read = await readBytes(bytesOf(1_000), limits)
  expect(read).toEqual(Uint8Array.from({ length: 1_000 }, (_, at) => at % 256))
  expect(await readBytes(bytesOf(1_001), limits)).toBe('too-large')
})
