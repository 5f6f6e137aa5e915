import { createHash } from 'node:crypto'
import {
  eventsHeadOf,
  itemProof,
  readManifest,
  type SealManifest,
  type SealProof,
  verifyItem,
  verifySeal,
} from '@purser/protocol'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { formOf, upload } from '../../../test/files/uploads.ts'
import {
  aVaultStage,
  ed25519,
  hourMs,
  publishedKeys,
  reportOf,
  streamOf,
  type VaultStage,
} from '../../../test/stories/vaults-stage.ts'
import { type Answer, codeOf, type Org } from '../../../test/world.ts'
import { runAdmin } from '../../admin/run.ts'
import { sql } from '../../platform/db/db.ts'
import { createVaultIn } from './index.ts'
import { sealVault } from './seal.ts'

let stage: VaultStage
let org: Org

beforeAll(async () => {
  stage = await aVaultStage()
  org = await stage.world.organisation('enterprise')
})
afterAll(() => stage.world.stop())

function manifestIn(response: Answer): SealManifest {
  const read = readManifest(response.body.manifest)
  if ('fault' in read) throw new Error(`no manifest: ${read.fault.path} ${read.fault.message}`)
  return read.value
}

/** A vault with a document, an event and a file. */
async function filled(): Promise<{ readonly id: string; readonly documentId: string }> {
  const id = await stage.vault(org)
  const made = await stage.call(org, 'POST', `/vaults/${id}/documents`, { name: 'Findings', data: { b: 1, a: [2] } })
  await stage.call(org, 'POST', `/vaults/${id}/emit`, { event: 'progress', payload: { percent: 1e21 } })
  return { id, documentId: String(made.body.id) }
}

test('a sealed vault proves all its contents offline, with the published key', async () => {
  const { id, documentId } = await filled()
  const before = await streamOf(stage.world, id)
  const sealed = await stage.call(org, 'POST', `/vaults/${id}/seal`, { summary: 'Done' })
  expect([sealed.status, sealed.body]).toEqual([
    200,
    expect.objectContaining({
      id,
      status: 'sealed',
      summary: 'Done',
      sealedAt: stage.now().toISOString(),
      manifestHash: expect.stringMatching(/^[0-9a-f]{64}$/),
    }),
  ])
  const proof = await stage.call(org, 'GET', `/vaults/${id}/proof`)
  const keys = await publishedKeys(stage.world)
  expect(await verifySeal(proof.body, ed25519, keys)).toMatchObject({ ok: true, statement: { treeSize: 1 } })
  expect(proof.body.keys).toEqual(keys)
  const content = '{"a":[2],"b":1}'
  expect(manifestIn(proof)).toEqual({
    version: 1,
    vaultId: id,
    organisationId: org.id,
    summary: 'Done',
    sealedAt: stage.now().toISOString(),
    items: [
      {
        kind: 'document',
        id: documentId,
        name: 'Findings',
        size: content.length,
        sha256: createHash('sha256').update(content).digest('hex'),
      },
    ],
    eventsHead: eventsHeadOf(before.map(({ event }) => event)),
    payment: null,
  })
  expect((await stage.call(org, 'GET', `/vaults/${id}`)).body).toMatchObject({
    manifest: proof.body.manifest,
    manifestHash: sealed.body.manifestHash,
    eventCount: 4,
  })
})

test('one item is proved without the others', async () => {
  const { id, documentId } = await filled()
  for (let more = 0; more < 6; more++)
    await stage.call(org, 'POST', `/vaults/${id}/documents`, { name: `more ${more}`, data: { more } })
  await stage.call(org, 'POST', `/vaults/${id}/seal`, {})
  const { body } = await stage.call(org, 'GET', `/vaults/${id}/proof?item=${documentId}`)
  const keys = await publishedKeys(stage.world)
  expect(await verifyItem(body, ed25519, keys)).toMatchObject({ ok: true, statement: { treeSize: 7 } })
  expect(Object.keys(body).sort()).toEqual(['index', 'item', 'path', 'statement', 'treeSize'])
  const absent = await stage.call(org, 'GET', `/vaults/${id}/proof?item=doc_01h455vb4pex5vsknk084sn02q`)
  expect([absent.status, codeOf(absent)]).toEqual([404, 'item-not-found'])
  expect((await stage.call(org, 'GET', `/vaults/${id}/proof?item=no`)).status).toBe(422)
})

test('every item of a vault of documents and files has its position and its path, also if the seal stored no tree', async () => {
  const org = await stage.world.organisation()
  const id = await stage.vault(org)
  for (let made = 0; made < 7; made++) {
    await stage.call(org, 'POST', `/vaults/${id}/documents`, { name: `d${made}`, data: { made } })
    const body = formOf({ filename: `f${made}.txt`, type: 'text/plain', content: `file ${made}` })
    await upload(stage.world.base, { key: org.testKey, vaultId: id, body })
  }
  await stage.call(org, 'POST', `/vaults/${id}/seal`, {})
  const { db } = stage.world.database
  const trees = () => db.run(sql`select 1 from vault_seal_trees where vault_id = ${id}`)
  expect(await trees()).toBe(1)
  const { body: whole } = await stage.call(org, 'GET', `/vaults/${id}/proof`)
  const read = readProof(whole)
  const ids = read.manifest.items.map((item) => item.id)
  expect(ids).toHaveLength(14)
  for (const kept of ['kept', 'made again', 'kept again']) {
    if (kept === 'made again') await db.run(sql`delete from vault_seal_trees where vault_id = ${id}`)
    for (const itemId of ids) {
      const { body } = await stage.call(org, 'GET', `/vaults/${id}/proof?item=${itemId}`)
      expect(body).toEqual(itemProof(read, itemId))
    }
    expect(await trees()).toBe(1)
  }
})

test('the proof of one of many items reads its own row and the nodes of its path, and no manifest', async () => {
  const org = await stage.world.organisation()
  const id = await stage.vault(org)
  const one = String((await stage.call(org, 'POST', `/vaults/${id}/documents`, { name: 'a', data: {} })).body.id)
  const { db } = stage.world.database
  await db.run(sql`
    insert into vault_documents (vault_id, id, organisation_id, environment, name, data, size, sha256, created_at)
    select vault_id, 'doc_0' || lpad(n::text, 25, '0'), organisation_id, environment, name, data, size, sha256, created_at
    from vault_documents, generate_series(1, 4999) as n where vault_id = ${id}`)
  await db.run(sql`update vaults set document_count = 5000 where id = ${id}`)
  expect((await stage.call(org, 'POST', `/vaults/${id}/seal`, {})).status).toBe(200)
  const whole = readProof((await stage.call(org, 'GET', `/vaults/${id}/proof`)).body)
  await db.run(sql`update vaults set manifest = '"nobody reads this"' where id = ${id}`)
  const { body } = await stage.call(org, 'GET', `/vaults/${id}/proof?item=${one}`)
  expect(body).toEqual(itemProof(whole, one))
  expect(body).toMatchObject({ treeSize: 5_000, index: whole.manifest.items.findIndex((item) => item.id === one) })
})

/** A whole proof as it came over the wire. */
function readProof(whole: unknown): SealProof {
  const { manifest, statement } = z.object({ manifest: z.unknown(), statement: z.string() }).parse(whole)
  const read = readManifest(manifest)
  if ('fault' in read) throw new Error(read.fault.message)
  return { manifest: read.value, statement }
}

test('there is no proof before the seal', async () => {
  const id = await stage.vault(org)
  const response = await stage.call(org, 'GET', `/vaults/${id}/proof`)
  expect([response.status, codeOf(response)]).toEqual([409, 'vault-not-sealed'])
})

test('an empty vault can be sealed, and the summary is optional', async () => {
  const id = await stage.vault(org)
  const sealed = await stage.call(org, 'POST', `/vaults/${id}/seal`)
  expect(sealed.body).toMatchObject({ status: 'sealed', summary: null })
  const proof = await stage.call(org, 'GET', `/vaults/${id}/proof`)
  expect(await verifySeal(proof.body, ed25519, await publishedKeys(stage.world))).toMatchObject({ ok: true })
  expect((await reportOf(stage.world, org)).filter(({ payload }) => payload.vaultId === id)).toEqual([
    {
      type: 'vault.sealed',
      payload: {
        vaultId: id,
        summary: '',
        sealedAt: stage.now().toISOString(),
        manifestHash: sealed.body.manifestHash,
      },
    },
  ])
})

test('a summary of 2000 characters fits and one of 2001 is a fault', async () => {
  const id = await stage.vault(org)
  expect((await stage.call(org, 'POST', `/vaults/${id}/seal`, { summary: 'é'.repeat(2_001) })).status).toBe(422)
  expect((await stage.call(org, 'POST', `/vaults/${id}/seal`, { summary: 'é'.repeat(2_000) })).status).toBe(200)
})

test('a sealed vault accepts no write, and vault.sealed stays the last event of its stream', async () => {
  const { id } = await filled()
  await stage.call(org, 'POST', `/vaults/${id}/seal`, { summary: 'Done' })
  const stream = await streamOf(stage.world, id)
  const state = (await stage.call(org, 'GET', `/vaults/${id}`)).body
  for (const [path, body] of [
    ['documents', { name: 'b', data: {} }],
    ['emit', { event: 'progress' }],
    ['seal', {}],
  ] as const) {
    const refused = await stage.call(org, 'POST', `/vaults/${id}/${path}`, body)
    expect([path, refused.status, codeOf(refused)]).toEqual([path, 409, 'vault-sealed'])
  }
  expect((await stage.call(org, 'GET', `/vaults/${id}`)).body).toEqual(state)
  expect((await stage.call(org, 'POST', `/vaults/${id}/extend`, { ttl: '30m' })).body).toMatchObject({
    status: 'sealed',
  })
  expect((await stage.call(org, 'POST', `/vaults/${id}/persist`)).body).toMatchObject({ status: 'sealed', ttl: null })
  expect(await streamOf(stage.world, id)).toEqual(stream)
  expect(stream.at(-1)?.event.type).toBe('vault.sealed')
  const reported = (await reportOf(stage.world, org)).filter(({ payload }) => payload.vaultId === id)
  expect(reported.map(({ type }) => type)).toEqual([
    'vault.sealed',
    'vault.extended',
    'vault.expiring',
    'vault.persisted',
  ])
})

test('the stream’s hashes are those of the events as they are sent, and the head is in the vault', async () => {
  const { id } = await filled()
  await stage.call(org, 'POST', `/vaults/${id}/extend`, { ttl: '3h' })
  await stage.call(org, 'POST', `/vaults/${id}/seal`, {})
  const stream = await streamOf(stage.world, id)
  expect(stream.map(({ sequence, event }) => [sequence, event.type])).toEqual([
    [1, 'vault.created'],
    [2, 'document.added'],
    [3, 'progress'],
    [4, 'vault.extended'],
    [5, 'vault.sealed'],
  ])
  const { eventsHead } = manifestIn(await stage.call(org, 'GET', `/vaults/${id}/proof`))
  expect(eventsHead).toEqual(eventsHeadOf(stream.slice(0, -1).map(({ event }) => event)))
})

test('the seal of a vault that a payment bought covers its receipt', async () => {
  const ctx = stage.ctx(org)
  const paymentId = 'pay_01h455vb4pex5vsknk084sn02q'
  const receipt = { paymentId, txHash: '0xab', amount: '0.01' }
  const order = { description: 'Bought', sessionId: null, paymentId } as const
  const [known, unknown] = await ctx.db.tx(async (tx) => [
    await createVaultIn(tx, ctx, order),
    await createVaultIn(tx, ctx, order),
  ])
  await sealVault({ ...ctx, receiptForSeal: async () => receipt }, known.id, {})
  await sealVault({ ...ctx, receiptForSeal: async () => undefined }, unknown.id, {})
  const proof = await stage.call(org, 'GET', `/vaults/${known.id}/proof`)
  expect(manifestIn(proof).payment).toEqual(receipt)
  expect(await verifySeal(proof.body, ed25519, await publishedKeys(stage.world))).toMatchObject({ ok: true })
  expect(manifestIn(await stage.call(org, 'GET', `/vaults/${unknown.id}/proof`)).payment).toEqual({ paymentId })
})

test('sealing again with the same Idempotency-Key returns the first response and seals once', async () => {
  const { id } = await filled()
  const seal = () => stage.world.call(org.testKey, 'POST', `/vaults/${id}/seal`, {}, { 'idempotency-key': id })
  const [first, second] = [await seal(), await seal()]
  expect([second.status, second.body, second.headers.get('idempotency-replayed')]).toEqual([200, first.body, 'true'])
  expect((await streamOf(stage.world, id)).filter(({ event }) => event.type === 'vault.sealed')).toHaveLength(1)
})

test('a persisted vault can be sealed and has no end to extend', async () => {
  const { id } = await filled()
  await stage.call(org, 'POST', `/vaults/${id}/persist`)
  const refused = await stage.call(org, 'POST', `/vaults/${id}/extend`, { ttl: '1h' })
  expect([refused.status, codeOf(refused)]).toEqual([409, 'vault-persisted'])
  expect((await stage.call(org, 'POST', `/vaults/${id}/seal`, {})).body).toMatchObject({ status: 'sealed', ttl: null })
  stage.pass(10_000 * hourMs)
  expect((await stage.call(org, 'GET', `/vaults/${id}/proof`)).status).toBe(200)
})

test('the proof of a vault that a withdrawn key sealed is signed again, and what that key signed is refused', async () => {
  const { id, documentId } = await filled()
  await stage.call(org, 'POST', `/vaults/${id}/seal`, { summary: 'Done' })
  const proof = async () => (await stage.call(org, 'GET', `/vaults/${id}/proof`)).body
  const before = await proof()
  const [kid = ''] = (await publishedKeys(stage.world)).map((key) => key.kid.split('#')[1])
  const { keyEncryption } = stage.world.config
  const env = {
    DATABASE_URL: stage.world.database.url,
    KEY_ENCRYPTION_KEY: 'base64' in keyEncryption ? keyEncryption.base64 : undefined,
  }
  const withdrawn = await runAdmin(['keys', 'withdraw-seal', '--key', kid], env)
  expect([withdrawn.exitCode, withdrawn.stderr]).toEqual([0, ''])
  stage.pass(10_000)
  const keys = await publishedKeys(stage.world)
  expect(keys.some((key) => key.kid.endsWith(kid))).toBe(false)
  expect(await verifySeal(before, ed25519, keys)).toMatchObject({ ok: false, fault: 'key-unknown' })
  const after = await proof()
  expect(await verifySeal(after, ed25519, keys)).toMatchObject({ ok: true })
  expect(after.manifest).toEqual(before.manifest)
  const { body } = await stage.call(org, 'GET', `/vaults/${id}/proof?item=${documentId}`)
  expect(await verifyItem(body, ed25519, keys)).toMatchObject({ ok: true })
})
