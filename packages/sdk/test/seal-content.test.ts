import { Readable } from 'node:stream'
import { expect, test } from 'vitest'
import { type Content, contentBytesMax, documentContent, itemProof, verifyItem } from '../src/seal/index.ts'
import { aSealer, digestOf, report, reportItem, sealedBy, song, songItem } from './seal-stage.ts'

const sealer = aSealer()
const { jwks: keys } = sealer
const songProof = itemProof(sealedBy(sealer), songItem.id)
const longer = new Uint8Array(Buffer.concat([song, Uint8Array.of(0)]))

const kinds: readonly (readonly [string, (bytes: Uint8Array) => Content])[] = [
  ['bytes', (bytes) => bytes],
  ['a Blob', (bytes) => new Blob([new Uint8Array(bytes)])],
  ['a ReadableStream', (bytes) => new Blob([new Uint8Array(bytes)]).stream()],
  ['a Readable of Node', (bytes) => Readable.from([bytes.subarray(0, 1_000), bytes.subarray(1_000)])],
  ['a size and a hash', digestOf],
]

test.each(kinds)(
  'the content of an item is known again as %s, and every other content refused',
  async (_kind, make) => {
    const changed = song.map((byte, index) => (index === 100_000 ? byte ^ 1 : byte))
    expect(await verifyItem(songProof, { keys, content: make(song) })).toMatchObject({ ok: true })
    for (const other of [changed, song.subarray(0, -1), longer, new Uint8Array()])
      expect(await verifyItem(songProof, { keys, content: make(other) })).toMatchObject({ fault: 'content-differs' })
  },
)

test('a truncated file is detected by its length', async () => {
  const verdict = await verifyItem(songProof, { keys, content: song.subarray(0, 150_000) })
  expect(verdict).toMatchObject({ detail: 'The content has 150000 bytes; 200000 were sealed.' })
})

test('a document is known again by its data, in whatever order its members stand', async () => {
  const proof = itemProof(sealedBy(sealer), reportItem.id)
  const reordered = Object.fromEntries(Object.entries(report).reverse())
  expect(await verifyItem(proof, { keys, content: documentContent(reordered) })).toMatchObject({ ok: true })
  const other = documentContent({ ...report, total: 12.6 })
  expect(await verifyItem(proof, { keys, content: other })).toMatchObject({ ok: false, fault: 'content-differs' })
})

test('a stream that never ends is left once it is longer than what was sealed', async () => {
  let given = 0
  const endless = new ReadableStream<Uint8Array>({
    pull(controller) {
      given += 1
      controller.enqueue(new Uint8Array(65_536))
    },
  })
  expect(await verifyItem(songProof, { keys, content: endless })).toMatchObject({ fault: 'content-differs' })
  expect(given).toBeLessThan(10)
})

test('content is not read for a proof that does not hold', async () => {
  const content = Readable.from([song])
  const verdict = await verifyItem({ ...songProof, index: 0 }, { keys, content })
  expect(verdict).toMatchObject({ ok: false, fault: 'not-included' })
  expect(content.readableDidRead).toBe(false)
})

test('content too large for memory is not buffered; its size and hash suffice', async () => {
  const huge = { ...songItem, size: contentBytesMax + 1 }
  const proof = itemProof(sealedBy(sealer, [huge]), huge.id)
  const content = Readable.from([song])
  expect(await verifyItem(proof, { keys, content })).toMatchObject({ fault: 'content-too-large' })
  expect(content.readableDidRead).toBe(false)
  const { size, sha256 } = huge
  expect(await verifyItem(proof, { keys, content: { size, sha256 } })).toMatchObject({ ok: true })
})

test('a stream that breaks, or speaks text, is an error and no verdict', async () => {
  const broken = new ReadableStream<Uint8Array>({ pull: (controller) => controller.error(new Error('the disk broke')) })
  await expect(verifyItem(songProof, { keys, content: broken })).rejects.toThrow('the disk broke')
  const text = Readable.from(['text'])
  await expect(verifyItem(songProof, { keys, content: text })).rejects.toThrow(TypeError)
})
