import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createHashing } from './hashing.ts'

const startHash = createHashing()
const sha256 = (content: Uint8Array) => createHash('sha256').update(content).digest('hex')

function shared(bytes: Uint8Array): Uint8Array {
  const memory = new Uint8Array(new SharedArrayBuffer(bytes.byteLength))
  memory.set(bytes)
  return memory
}

test('contents that are hashed concurrently in interleaved chunks each have the right SHA-256', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.array(fc.uint8Array({ maxLength: 500 })), { maxLength: 6 }), async (contents) => {
      const running = contents.map((pieces) => ({ pieces, hash: startHash() }))
      const pieceMax = Math.max(0, ...contents.map(({ length }) => length))
      const updates = Array.from({ length: pieceMax }, (_, index) =>
        running.map(({ pieces, hash }) => hash.update(shared(pieces[index] ?? new Uint8Array()))),
      )
      await Promise.all(updates.flat())
      const found = await Promise.all(running.map(({ hash }) => hash.digest()))
      expect(found).toEqual(contents.map((pieces) => sha256(Buffer.concat(pieces))))
    }),
    { numRuns: 30 },
  )
})

test('memory can be reused once its bytes were read', async () => {
  const hash = startHash()
  const memory = shared(new Uint8Array(100_000))
  for (const value of [1, 2, 3]) {
    memory.fill(value)
    await hash.update(memory)
  }
  const whole = Buffer.concat([1, 2, 3].map((value) => Buffer.alloc(100_000, value)))
  expect(await hash.digest()).toBe(sha256(whole))
})

test('abandoned content does not affect others', async () => {
  const [given, kept] = [startHash(), startHash()]
  await Promise.all([given.update(shared(Buffer.from('gone'))), kept.update(shared(Buffer.from('kept')))])
  given.drop()
  expect(await kept.digest()).toBe(sha256(Buffer.from('kept')))
})

test('a crashed thread fails its contents, and the next content gets a new thread', async () => {
  const broken = startHash()
  // An invalid value, which only a bug could send, crashes the thread.
  await expect(broken.update(JSON.parse('7'))).rejects.toThrow('the hashing thread ended')
  await expect(broken.digest()).rejects.toThrow('the hashing thread ended')
  const next = startHash()
  await next.update(shared(Buffer.from('next')))
  expect(await next.digest()).toBe(sha256(Buffer.from('next')))
})
