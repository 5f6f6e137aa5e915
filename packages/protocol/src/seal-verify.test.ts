import { createPublicKey, generateKeyPairSync, sign, verify } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { encodeBase64Url } from './base64.ts'
import { canonicalJson } from './canonical-json.ts'
import { composeJws, jwsSigningInput } from './jws.ts'
import { buildManifest, itemProof, type SealFacts, statementOf } from './seal.ts'
import type { SealedItem, SealProof } from './seal-parse.ts'
import { readSealProof } from './seal-parse.ts'
import { verifyItem, verifySeal } from './seal-verify.ts'
import { utf8 } from './utf8.ts'
import vectors from './vectors/seal.json' with { type: 'json' }
import type { JsonObject } from './x402/messages.ts'

const kid = 'did:web:pay.example.com#seal-2'
const pair = generateKeyPairSync('ed25519')
const key = { kid, x: pair.publicKey.export({ format: 'jwk' }).x ?? '' }
const known = proofOfTheVector()

function checkEd25519(publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean {
  const jwk = { kty: 'OKP', crv: 'Ed25519', x: encodeBase64Url(publicKey) }
  return verify(null, message, createPublicKey({ key: jwk, format: 'jwk' }), signature)
}

function signed(payload: JsonObject, header: JsonObject = { alg: 'EdDSA', kid }): string {
  const input =
    header.alg === 'EdDSA' && typeof header.kid === 'string'
      ? jwsSigningInput({ alg: 'EdDSA', kid: header.kid }, payload)
      : `${encodeBase64Url(utf8(JSON.stringify(header)))}.${encodeBase64Url(utf8(canonicalJson(payload)))}`
  return composeJws(input, sign(null, utf8(input), pair.privateKey))
}

function sealed(facts: SealFacts): SealProof {
  const manifest = buildManifest(facts)
  return { manifest, statement: signed(statementOf(manifest)) }
}

const hash = fc.stringMatching(/^[0-9a-f]{64}$/)
const name = fc.string({ unit: 'binary', minLength: 1, maxLength: 12 })
/** No manifest holds the name that JavaScript gives to something else. */
const memberName = name.filter((text) => text !== '__proto__')
const size = fc.nat({ max: Number.MAX_SAFE_INTEGER })
const item = fc.oneof(
  fc.record({ kind: fc.constant('document' as const), id: fc.uuid(), name, size, sha256: hash }),
  fc.record({ kind: fc.constant('file' as const), id: fc.uuid(), name, mimeType: name, size, sha256: hash }),
)
const vault: fc.Arbitrary<SealFacts> = fc.record({
  vaultId: fc.uuid(),
  organisationId: fc.uuid(),
  summary: fc.oneof(fc.constant(null), name),
  sealedAt: fc.constant('2026-01-02T03:04:05.678Z'),
  items: fc.uniqueArray<SealedItem, string>(item, { minLength: 2, maxLength: 12, selector: ({ id }) => id }),
  eventsHead: fc.record({ count: size, hash }),
  payment: fc.oneof(fc.constant(null), fc.dictionary(memberName, fc.oneof(name, fc.integer()), { maxKeys: 4 })),
})

test('a proof that another implementation made and signed holds, and says who signed what', async () => {
  expect(await verifySeal(vectors.proof, checkEd25519, [vectors.key])).toEqual({
    ok: true,
    kid: vectors.key.kid,
    statement: vectors.statementPayload,
  })
})

test('the proof of any vault holds, and that of each of its items, also after a way through JSON', async () => {
  await fc.assert(
    fc.asyncProperty(vault, async (facts) => {
      const proof = sealed(facts)
      expect(await verifySeal(JSON.parse(JSON.stringify(proof)), checkEd25519, [key])).toMatchObject({ ok: true, kid })
      for (const { id, sha256 } of facts.items) {
        const one: unknown = JSON.parse(JSON.stringify(itemProof(proof, id)))
        expect(await verifyItem(one, checkEd25519, [key], sha256)).toMatchObject({ ok: true, kid })
      }
    }),
    { numRuns: 40 },
  )
})

test('a change of any bit of a proof is detected', async () => {
  const { changes, unseen } = await flipEveryBit(known, (proof) => verifySeal(proof, checkEd25519, [vectors.key]))
  expect(changes).toBeGreaterThan(3_000)
  expect(unseen).toEqual([])
})

test('not one bit of the proof of an item can change unseen', async () => {
  for (const { id } of known.manifest.items) {
    const { changes, unseen } = await flipEveryBit(itemProof(known, id), (proof) =>
      verifyItem(proof, checkEd25519, [vectors.key]),
    )
    expect(changes).toBeGreaterThan(1_000)
    expect(unseen).toEqual([])
  }
})

test('a vault with an item changed, dropped, added, doubled or moved is not the one that was sealed', async () => {
  await fc.assert(
    fc.asyncProperty(vault, fc.nat(), item, async (facts, at, extra) => {
      fc.pre(facts.items.every(({ id }) => id !== extra.id))
      const { manifest, statement } = sealed(facts)
      const index = at % manifest.items.length
      for (const [fault, items] of forgeries(manifest.items, index, extra)) {
        const verdict = await verifySeal({ manifest: { ...manifest, items }, statement }, checkEd25519, [key])
        expect(verdict, fault).toMatchObject({ ok: false, fault })
      }
    }),
    { numRuns: 100 },
  )
})

function forgeries(items: readonly SealedItem[], index: number, extra: SealedItem) {
  const one = items[index] ?? extra
  const spoiled: SealedItem[] = [
    { ...one, name: `${one.name}x` },
    { ...one, name: ` ${one.name}` },
    { ...one, size: one.size === 0 ? 1 : one.size - 1 },
    { ...one, id: `${one.id}0` },
    { ...one, sha256: one.sha256.replace(/^./, (digit) => (digit === '0' ? '1' : '0')) },
  ]
  if (one.kind === 'file') spoiled.push({ ...one, mimeType: `${one.mimeType}x` }, without(one, 'mimeType'))
  const changed = spoiled.map((other) => ['merkle-root-differs', items.with(index, other)] as const)
  const inOrder = [...items.filter(({ id }) => id !== extra.id), extra].sort((a, b) => (a.id < b.id ? -1 : 1))
  return [
    ...changed,
    ['tree-size-differs', items.toSpliced(index, 1)] as const,
    ['tree-size-differs', inOrder] as const,
    ['proof-malformed', items.toSpliced(index, 0, one)] as const,
    ['proof-malformed', items.toReversed()] as const,
    ['proof-malformed', items.with(index, Object.assign({ note: 'x' }, one))] as const,
  ]
}

test('a manifest with anything beside its items changed is not the one that was sealed', async () => {
  const { manifest, statement } = known
  const changes: readonly (readonly [string, JsonObject])[] = [
    ['vault-differs', { vaultId: `${manifest.vaultId}x` }],
    ['sealed-at-differs', { sealedAt: '2026-01-02T03:04:07.001Z' }],
    ['manifest-hash-differs', { organisationId: 'org_x' }],
    ['manifest-hash-differs', { summary: null }],
    ['manifest-hash-differs', { payment: null }],
    ['manifest-hash-differs', { payment: { ...manifest.payment, note: '' } }],
    ['manifest-hash-differs', { eventsHead: { ...manifest.eventsHead, count: 1 } }],
  ]
  for (const [fault, change] of changes)
    expect(await verifySeal({ manifest: { ...manifest, ...change }, statement }, checkEd25519, [vectors.key])).toEqual({
      ok: false,
      fault,
      at: '',
    })
})

test('the statement of one vault does not prove another', async () => {
  const other = sealed({ ...factsOf(known), vaultId: 'vlt_other' })
  const own = sealed(factsOf(known))
  const mixed = { manifest: own.manifest, statement: other.statement }
  expect(await verifySeal(mixed, checkEd25519, [key])).toMatchObject({ ok: false, fault: 'vault-differs' })
})

test('a forger who signs with a key of their own and writes it into the proof is not believed', async () => {
  const forged = { ...sealed(factsOf(known)), keys: [{ ...key, kid }] }
  const honest = { ...key, x: vectors.key.x }
  expect(await verifySeal(forged, checkEd25519, [honest])).toMatchObject({ ok: false, fault: 'signature-invalid' })
  expect(await verifySeal(forged, checkEd25519, [])).toMatchObject({ ok: false, fault: 'key-unknown' })
  expect(await verifySeal(forged, checkEd25519, [vectors.key])).toMatchObject({ ok: false, fault: 'key-unknown' })
  expect(await verifySeal(forged, checkEd25519, [honest, key]), 'two keys of one name').toMatchObject({ ok: true })
})

test('the answer of an asynchronous check counts, and anything but true is a no', async () => {
  const later = async (...args: Parameters<typeof checkEd25519>): Promise<boolean> => checkEd25519(...args)
  expect(await verifySeal(known, later, [vectors.key])).toMatchObject({ ok: true })
  expect(await verifySeal(known, async () => false, [vectors.key])).toMatchObject({ fault: 'signature-invalid' })
})

test('something else that the service signed with the same key is no statement of a seal', async () => {
  const { manifest } = known
  const statement = statementOf(manifest)
  const payloads: readonly (readonly [string, JsonObject])[] = [
    ['', { ...statement, note: 1 }],
    ['/version', { ...statement, version: 2 }],
    ['/treeSize', { ...statement, treeSize: '3' }],
    ['/merkleRoot', { ...statement, merkleRoot: statement.merkleRoot.toUpperCase() }],
    ['/version', { resourceUrl: 'https://example.com', payTo: '0x00' }],
  ]
  for (const [at, payload] of payloads)
    expect(await verifySeal({ manifest, statement: signed(payload) }, checkEd25519, [key])).toEqual({
      ok: false,
      fault: 'statement-malformed',
      at,
    })
  const unsigned = signed(statement, { alg: 'none', kid })
  expect(await verifySeal({ manifest, statement: unsigned }, checkEd25519, [key])).toMatchObject({
    fault: 'statement-malformed',
  })
})

test('an item proves content of its own hash and no other', async () => {
  const [first, second] = known.manifest.items
  const proof = itemProof(known, first?.id ?? '')
  expect(await verifyItem(proof, checkEd25519, [vectors.key], first?.sha256)).toMatchObject({ ok: true })
  for (const other of [second?.sha256 ?? '', first?.sha256.toUpperCase(), ''])
    expect(await verifyItem(proof, checkEd25519, [vectors.key], other)).toMatchObject({ fault: 'content-differs' })
})

test('an item that was not sealed, or has another position, is not included; a size other than the signed one is refused', async () => {
  const [first, second] = known.manifest.items
  const proof = itemProof(known, first?.id ?? '')
  const faults: readonly (readonly [string, unknown])[] = [
    ['not-included', { ...proof, item: second }],
    ['not-included', { ...proof, item: { ...first, name: 'other' } }],
    ['not-included', { ...proof, index: 1 }],
    ['not-included', { ...proof, path: [] }],
    ['not-included', { ...proof, index: 3 }],
    ['tree-size-differs', { ...proof, treeSize: 4 }],
    ['proof-malformed', { ...proof, index: -1 }],
    ['proof-malformed', { ...proof, path: ['00'] }],
    ['proof-malformed', { ...proof, path: new Array(21).fill('0'.repeat(64)) }],
    ['proof-malformed', { ...proof, extra: 1 }],
    ['proof-malformed', undefined],
  ]
  for (const [fault, spoiled] of faults)
    expect(await verifyItem(spoiled, checkEd25519, [vectors.key])).toMatchObject({ ok: false, fault })
})

test('a malformed proof says where it is so', async () => {
  const { manifest, statement } = known
  const places: readonly (readonly [string, unknown])[] = [
    ['', null],
    ['', [known]],
    ['', { ...known, extra: 1 }],
    ['/manifest', { statement }],
    ['/statement', { manifest, statement: '' }],
    ['/manifest/version', { manifest: { ...manifest, version: 2 }, statement }],
    ['/manifest/payment', { manifest: without(manifest, 'payment'), statement }],
    ['/manifest/items', { manifest: { ...manifest, items: {} }, statement }],
    ['/manifest/items/0', { manifest: { ...manifest, items: [1] }, statement }],
    ['/manifest/items/1/id', { manifest: { ...manifest, items: manifest.items.toReversed() }, statement }],
    ['/keys/0/x', { ...known, keys: [{ kid, x: '!'.repeat(43) }] }],
  ]
  for (const [at, proof] of places)
    expect(await verifySeal(proof, checkEd25519, [vectors.key])).toEqual({ ok: false, fault: 'proof-malformed', at })
})

test('no JSON whatsoever makes a check throw', async () => {
  await fc.assert(
    fc.asyncProperty(fc.jsonValue(), fc.jsonValue(), async (manifest, other) => {
      for (const value of [
        manifest,
        { manifest, statement: other },
        { ...known, manifest },
        { ...known, statement: other },
      ]) {
        expect((await verifySeal(value, checkEd25519, [vectors.key])).ok).toBe(false)
        expect((await verifyItem(value, checkEd25519, [vectors.key])).ok).toBe(false)
      }
    }),
  )
})

/** Flips each bit of the JSON text of a proof in turn; what then still reads as JSON, and as another value, must not hold. */
async function flipEveryBit(proof: unknown, check: (proof: unknown) => Promise<{ ok: boolean }>) {
  const text = utf8(canonicalJson(proof))
  const unseen: string[] = []
  let changes = 0
  for (let bit = 0; bit < text.length * 8; bit++) {
    const changed = Uint8Array.from(text)
    changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7))
    const value = jsonOf(changed)
    if (value === undefined) continue
    changes++
    if ((await check(value)).ok) unseen.push(new TextDecoder().decode(changed))
  }
  return { changes, unseen }
}

function jsonOf(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch {
    return undefined
  }
}

function without<T extends object, K extends keyof T>(value: T, name: K): Omit<T, K> {
  const { [name]: _dropped, ...rest } = value
  return rest
}

function factsOf({ manifest }: SealProof): SealFacts {
  const { version: _version, ...facts } = manifest
  return facts
}

function proofOfTheVector(): SealProof {
  const read = readSealProof(vectors.proof)
  if ('fault' in read) throw new Error(`${read.fault.path} ${read.fault.message}`)
  return read.value
}
