import fc from 'fast-check'
import { expect, test } from 'vitest'
import { itemProof, type SealedItem, type SealProof, verifyItem, verifySeal } from '../src/seal/index.ts'
import { aSealer, manyItems, reportItem, sealedBy, signedBy, songItem } from './seal-stage.ts'

const sealer = aSealer()
const { jwks: keys } = sealer
const proof = sealedBy(sealer)
const { manifest, statement } = proof

test('the proof of a sealed vault holds, and says who signed what', async () => {
  expect(await verifySeal(JSON.parse(JSON.stringify(proof)), { keys })).toEqual({
    ok: true,
    kid: 'did:web:pay.example.com#seal-1',
    statement: expect.objectContaining({ vaultId: 'vlt_01', sealedAt: '2026-01-02T03:04:05.678Z', treeSize: 2 }),
  })
})

test('a change of any bit of a proof is detected', async () => {
  const text = JSON.stringify({ manifest, statement })
  let changed = 0
  for (let at = 0; at < text.length; at++) {
    const flipped = `${text.slice(0, at)}${String.fromCharCode(text.charCodeAt(at) ^ 1)}${text.slice(at + 1)}`
    const other = jsonOf(flipped)
    if (other === undefined || JSON.stringify(other) === text) continue
    changed += 1
    expect(await verifySeal(other, { keys }), `at ${at}`).toMatchObject({ ok: false })
  }
  expect(changed).toBeGreaterThan(500)
})

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const [first, second] = [reportItem, songItem]
const swapped: SealedItem = { ...first, id: second.id }

test.each<[string, string, unknown]>([
  ['a changed name', 'merkle-root-differs', withItems([{ ...first, name: 'Report' }, second])],
  ['a changed size', 'merkle-root-differs', withItems([{ ...first, size: first.size + 1 }, second])],
  ['a changed hash', 'merkle-root-differs', withItems([{ ...first, sha256: second.sha256 }, second])],
  ['another type of file', 'merkle-root-differs', withItems([first, { ...second, mimeType: 'text/html' }])],
  ['one item in the place of another', 'merkle-root-differs', withItems([{ ...second, id: first.id }, swapped])],
  ['an item gone', 'tree-size-differs', withItems([first])],
  ['an item more', 'tree-size-differs', withItems([first, { ...first, id: 'doc_02' }, second])],
  ['another order', 'proof-malformed', withItems([second, first])],
  ['an item twice', 'proof-malformed', withItems([first, first])],
  ['another summary', 'manifest-hash-differs', withManifest({ summary: 'All undone' })],
  ['no payment', 'manifest-hash-differs', withManifest({ payment: null })],
  ['other events', 'manifest-hash-differs', withManifest({ eventsHead: { count: 2, hash: 'ab'.repeat(32) } })],
  ['another vault', 'vault-differs', withManifest({ vaultId: 'vlt_02' })],
  ['another time', 'sealed-at-differs', withManifest({ sealedAt: '2026-01-02T03:04:05.679Z' })],
  ['a statement of something else', 'statement-malformed', { manifest, statement: signedBy(sealer, { total: 1 }) }],
  ['no statement', 'proof-malformed', { manifest }],
  ['nothing', 'proof-malformed', undefined],
])('%s is found out as %s, in a sentence', async (_what, fault, forged) => {
  const verdict = await verifySeal(forged, { keys })
  expect(verdict).toEqual({ ok: false, fault, at: expect.any(String), detail: expect.stringMatching(/^[A-Z].+\.$/) })
})

function withItems(items: readonly SealedItem[]): unknown {
  return withManifest({ items })
}

function withManifest(change: Partial<SealProof['manifest']>): unknown {
  return { manifest: { ...manifest, ...change }, statement }
}

test('each of 10,000 items is proven by itself, and the whole vault at once', async () => {
  const large = sealedBy(sealer, manyItems(10_000))
  expect(await verifySeal(large, { keys })).toMatchObject({ ok: true, statement: { treeSize: 10_000 } })
  for (const index of [0, 1, 4_095, 4_096, 8_191, 8_192, 9_998, 9_999]) {
    const { id } = large.manifest.items[index] ?? first
    const one = itemProof(large, id)
    expect(one?.path.length).toBeLessThanOrEqual(14)
    expect(await verifyItem(one, { keys })).toMatchObject({ ok: true })
    expect(await verifyItem({ ...one, index: index ^ 1 }, { keys })).toMatchObject({ fault: 'not-included' })
  }
})

test('one item changed among 10,000 is found out', async () => {
  const large = sealedBy(sealer, manyItems(10_000))
  const items = large.manifest.items.with(7_777, { ...first, id: large.manifest.items[7_777]?.id ?? '' })
  const forged = { ...large, manifest: { ...large.manifest, items } }
  expect(await verifySeal(forged, { keys })).toMatchObject({ ok: false, fault: 'merkle-root-differs' })
})

test('an item that was not sealed is not included, whichever of its members is another', async () => {
  const one = itemProof(proof, songItem.id)
  for (const change of [{ name: 'song.ogg' }, { size: 1 }, { id: 'fil_02' }, { mimeType: 'text/html' }]) {
    const forged = { ...one, item: { ...songItem, ...change } }
    expect(await verifyItem(forged, { keys })).toMatchObject({ ok: false, fault: 'not-included' })
  }
  expect(await verifyItem({ ...one, treeSize: 3 }, { keys })).toMatchObject({ fault: 'tree-size-differs' })
  expect(await verifyItem({ ...one, path: [] }, { keys })).toMatchObject({ fault: 'not-included' })
})

test('no JSON whatsoever makes a check throw or pass', async () => {
  await fc.assert(
    fc.asyncProperty(fc.jsonValue(), async (value) => {
      for (const forged of [value, { manifest, statement: value }, { manifest: value, statement }]) {
        expect((await verifySeal(forged, { keys })).ok).toBe(false)
        expect((await verifyItem(forged, { keys })).ok).toBe(false)
      }
    }),
  )
})
