import { buildManifest, canonicalJson, manifestHash, noEvents, type SealedItem } from '@purser/protocol'
import { expect, test } from 'vitest'
import { manifestOfParts } from './manifest-parts.ts'

const facts = {
  vaultId: 'vlt_1',
  organisationId: 'org_1',
  summary: 'with "items":[ in it',
  sealedAt: '2026-11-26T12:00:00.000Z',
  eventsHead: noEvents,
  payment: { resource: '"items":[' },
}

function someItems(count: number): SealedItem[] {
  return Array.from({ length: count }, (_, at) => {
    const id = `fil_${String(at).padStart(26, '0')}`
    return { kind: 'file', id, name: `Blatt „${at}“`, mimeType: 'text/plain', size: at, sha256: 'a'.repeat(64) }
  })
}

async function* partsOf(items: readonly SealedItem[], size: number) {
  for (let at = 0; at <= items.length; at += size) yield items.slice(at, at + size)
}

test.each([0, 1, 9, 10, 25])(
  'a manifest of %s items that is written in parts is the one that is built at once',
  async (count) => {
    const items = someItems(count)
    const whole = buildManifest({ ...facts, items })
    const written = await manifestOfParts(facts, partsOf(items, 10))
    expect(written).toEqual({ manifest: whole, text: canonicalJson(whole), hash: manifestHash(whole) })
  },
)

test('an item that comes twice, in one part or in two, and parts out of order are refused', async () => {
  const items = someItems(4)
  for (const others of [
    [...items, ...items],
    [...items.slice(0, 2), ...items],
    [...items.slice(2), ...items.slice(0, 2)],
  ])
    for (const size of [2, 3]) await expect(manifestOfParts(facts, partsOf(others, size))).rejects.toThrow(RangeError)
})
