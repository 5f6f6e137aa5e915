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

test('contents that are hashed at once, piece by piece in turn, each have their own SHA-256', async () => {
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

test('a memory may be written anew once its bytes were read', async () => {
  const hash = startHash()
  const memory = shared(new Uint8Array(100_000))
  for (const value of [1, 2, 3]) {
    memory.fill(value)
    await hash.update(memory)
  }
  const whole = Buffer.concat([1, 2, 3].map((value) => Buffer.alloc(100_000, value)))
  expect(await hash.digest()).toBe(sha256(whole))
})

test('a content that is given up changes no other', async () => {
  const [given, kept] = [startHash(), startHash()]
  await Promise.all([given.update(shared(Buffer.from('gone'))), kept.update(shared(Buffer.from('kept')))])
  given.drop()
  expect(await kept.digest()).toBe(sha256(Buffer.from('kept')))
})

test('a thread that dies fails the contents that were in it, and the next one has another', async () => {
  const broken = startHash()
  // No bytes, as only a fault of ours could send them: the thread ends of it.
  await expect(broken.update(JSON.parse('7'))).rejects.toThrow('the thread that hashes ended')
  await expect(broken.digest()).rejects.toThrow('the thread that hashes ended')
  const next = startHash()
  await next.update(shared(Buffer.from('next')))
  expect(await next.digest()).toBe(sha256(Buffer.from('next')))
})
