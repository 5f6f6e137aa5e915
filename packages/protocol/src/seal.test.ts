import fc from 'fast-check'
import { expect, test } from 'vitest'
import { eventsHeadOf } from './event-chain.ts'
import { sha256 } from './hash.ts'
import { jwsSigningInput } from './jws.ts'
import {
  buildManifest,
  documentContent,
  hashBytesOf,
  itemProof,
  manifestHash,
  merkleRootOf,
  type SealFacts,
  statementOf,
} from './seal.ts'
import type { SealedItem } from './seal-parse.ts'
import { readManifest, sealLimits } from './seal-parse.ts'
import vectors from './vectors/seal.json' with { type: 'json' }

const facts = factsOfTheVector()

test('another implementation made the same manifest hash, Merkle root, statement and signing input', () => {
  const manifest = buildManifest(facts)
  expect(manifest).toEqual(vectors.proof.manifest)
  expect(manifestHash(manifest)).toBe(vectors.statementPayload.manifestHash)
  expect(merkleRootOf(manifest)).toBe(vectors.statementPayload.merkleRoot)
  expect(statementOf(manifest)).toEqual(vectors.statementPayload)
  const input = jwsSigningInput({ alg: 'EdDSA', kid: vectors.key.kid }, statementOf(manifest))
  expect(vectors.proof.statement.startsWith(`${input}.`)).toBe(true)
})

test('the content of a document is its canonical JSON, and its hash and size are of that', () => {
  const content = documentContent(vectors.document)
  expect(new TextDecoder().decode(content)).toBe(vectors.documentContent)
  const [item] = vectors.proof.manifest.items
  expect(item?.size).toBe(content.length)
  expect(sha256(content)).toEqual(hashBytesOf(item?.sha256 ?? ''))
})

test('the proof of each item has the audit path that another implementation computed', () => {
  const proof = { manifest: buildManifest(facts), statement: vectors.proof.statement }
  for (const [index, item] of proof.manifest.items.entries())
    expect(itemProof(proof, item.id)).toEqual({
      item,
      index,
      path: vectors.paths[index],
      treeSize: 3,
      statement: proof.statement,
    })
  expect(itemProof(proof, 'doc_nothing')).toBeUndefined()
})

test('the order in which a store lists the items does not change the manifest', () => {
  const manifest = buildManifest(facts)
  fc.assert(
    fc.property(fc.shuffledSubarray([...facts.items], { minLength: facts.items.length }), (items) => {
      expect(buildManifest({ ...facts, items })).toEqual(manifest)
    }),
  )
})

test('whatever else a row holds does not come into the manifest', () => {
  const rows = facts.items.map((item) => ({ ...item, url: 'https://example.com/secret', createdAt: 'now' }))
  const head = { ...facts.eventsHead, cursor: 7 }
  const wider = { ...facts, items: rows, eventsHead: head, internalNote: 'x' }
  expect(manifestHash(buildManifest(wider))).toBe(vectors.statementPayload.manifestHash)
})

test('a vault with nothing in it, no summary and no payment can be sealed', () => {
  const manifest = buildManifest({ ...facts, items: [], summary: null, payment: null, eventsHead: eventsHeadOf([]) })
  expect(statementOf(manifest)).toMatchObject({
    treeSize: 0,
    merkleRoot: 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
  })
})

test('a manifest reads back from its JSON as it was', () => {
  const manifest = buildManifest(facts)
  expect(readManifest(JSON.parse(JSON.stringify(manifest)))).toEqual({ value: manifest })
})

const [document, , file] = facts.items
const spoiledFacts: readonly (readonly [string, Partial<SealFacts>])[] = [
  ['the same item twice', { items: [...facts.items, ...facts.items] }],
  ['an item without a name', spoiledItem({ name: '' })],
  ['a name that is too long', spoiledItem({ name: 'x'.repeat(sealLimits.nameLengthMax + 1) })],
  ['a name that is not Unicode', spoiledItem({ name: 'x\ud800' })],
  ['a size below zero', spoiledItem({ size: -1 })],
  ['a size that is no whole number', spoiledItem({ size: 0.5 })],
  ['a size beyond exact numbers', spoiledItem({ size: 2 ** 53 })],
  ['a size of minus zero', spoiledItem({ size: -0 })],
  ['a hash in upper case', spoiledItem({ sha256: 'A'.repeat(64) })],
  ['a hash with 0x', spoiledItem({ sha256: `0x${'a'.repeat(62)}` })],
  ['a document with a media type', spoiledItem({ mimeType: 'text/plain' })],
  ['a time without milliseconds', { sealedAt: '2026-01-02T03:04:07Z' }],
  ['a time that is not in UTC', { sealedAt: '2026-01-02T03:04:07.000+01' }],
  ['a summary that is too long', { summary: 'x'.repeat(sealLimits.summaryLengthMax + 1) }],
  ['a payment that JSON cannot hold', { payment: { amount: 1n } }],
  ['a payment that is nested too deeply', { payment: JSON.parse(`${'{"a":'.repeat(20)}1${'}'.repeat(20)}`) }],
  ['a count of events below zero', { eventsHead: { count: -1, hash: '0'.repeat(64) } }],
]

test.each(spoiledFacts)('nothing is made to be signed of %s', (_name, spoiled) => {
  expect(() => buildManifest({ ...facts, ...spoiled })).toThrow(RangeError)
})

test('more items than a manifest may hold are refused', () => {
  const items = Array.from({ length: sealLimits.itemsMax + 1 }, (_, index) => ({ ...aDocument(), id: `doc_${index}` }))
  expect(() => buildManifest({ ...facts, items })).toThrow(/\/items must be a list of at most/)
})

test('no fault repeats what the sender wrote', () => {
  expect(() => buildManifest({ ...facts, ...spoiledItem({ sha256: 'hunter2' }) })).toThrow(
    /^invalid manifest: \/items\/0\/sha256 must be 64 lower-case hex digits$/,
  )
})

function aDocument(): SealedItem {
  if (document === undefined) throw new Error('the vector holds no document')
  return document
}

function spoiledItem(change: Partial<SealedItem>): Partial<SealFacts> {
  return { items: [{ ...aDocument(), ...change }, ...(file === undefined ? [] : [file])] }
}

function factsOfTheVector(): SealFacts {
  const read = readManifest(vectors.proof.manifest)
  if ('fault' in read) throw new Error(`${read.fault.path} ${read.fault.message}`)
  const { version: _version, ...rest } = read.value
  return rest
}
