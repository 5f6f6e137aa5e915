import { readManifest, verifySeal } from '@purser/protocol'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { aVaultStage, ed25519, publishedKeys, type VaultStage } from '../../../test/stories/vaults-stage.ts'
import type { Answer, Org } from '../../../test/world.ts'
import { sql } from '../../platform/db/db.ts'
import { newId } from '../../platform/ids.ts'
import { listDocuments, listFiles } from './document-store.ts'
import { shownDocument } from './documents.ts'
import { getVault } from './read.ts'
import type { VaultId } from './schema.ts'
import { getProof } from './seal.ts'

let stage: VaultStage
let org: Org

beforeAll(async () => {
  stage = await aVaultStage()
  org = await stage.world.organisation('enterprise')
})
afterAll(() => stage.world.stop())

const documentCount = 1_501
const fileCount = 1_300

/** A vault with documents that have more data than a vault's record shows, and files. */
async function largeVault(files = fileCount): Promise<VaultId> {
  const id = await stage.vault(org)
  const data = { text: 'é'.repeat(100) }
  await stage.call(org, 'POST', `/vaults/${id}/documents`, { name: 'a "name"', data })
  const { deps } = stage.world.server
  const { db } = stage.world.database
  const documents = Array.from({ length: documentCount - 1 }, () => newId('doc', deps))
  await db.run(sql`
    insert into vault_documents (vault_id, id, organisation_id, environment, name, data, size, sha256, created_at)
    select vault_id, new_id, organisation_id, environment, name, data, size, sha256, created_at
    from vault_documents, unnest(${documents}::text[]) as new_id where vault_id = ${id}`)
  const fileIds = Array.from({ length: files }, () => newId('fil', deps))
  await db.run(sql`
    insert into vault_files (vault_id, id, organisation_id, environment, name, mime_type, size, sha256, blob_key, created_at)
    select ${id}, new_id, ${org.id}, 'test', 'a.txt', 'text/plain', 5, ${'ab'.repeat(32)}, new_id, ${stage.now()}
    from unnest(${fileIds}::text[]) as new_id`)
  await db.run(sql`update vaults set document_count = ${documentCount}, file_count = ${files} where id = ${id}`)
  return id as VaultId
}

function lengthOf(response: Answer): string | null {
  return response.headers.get('content-length')
}

test('a vault of many items is sent in pieces, with all that a smaller one has', async () => {
  const id = await largeVault()
  const { db } = stage.world.database
  const tenant = { organisationId: org.id, environment: 'test' as const }
  const [documents, files] = [await listDocuments(db, tenant, id, 262_144), await listFiles(db, tenant, id)]
  const small = await stage.call(org, 'GET', `/vaults/${await stage.vault(org)}`)
  const response = await stage.call(org, 'GET', `/vaults/${id}`)
  expect([response.status, lengthOf(response), lengthOf(small) !== null]).toEqual([200, null, true])
  expect(response.headers.get('content-type')).toBe(small.headers.get('content-type'))
  expect(Object.keys(response.body).sort()).toEqual(Object.keys(small.body).sort())
  const asSent = (value: unknown): unknown => JSON.parse(JSON.stringify(value))
  expect(response.body.documents).toEqual(asSent(documents.map(shownDocument)))
  expect(documents.filter(({ data }) => data !== null).length).toBeGreaterThan(500)
  expect(documents.at(-1)?.data).toBeNull()
  const shownFiles = response.body.files as { readonly id: string; readonly url: string }[]
  expect(shownFiles.map(({ id: fileId }) => fileId)).toEqual(files.map(({ id: fileId }) => fileId))
  expect(shownFiles.every(({ url }) => url.startsWith('http'))).toBe(true)
  const { items } = response.body.manifest as { readonly items: readonly { readonly id: string }[] }
  expect(items.map((item) => item.id)).toEqual([...documents, ...files].map((item) => item.id))
})

test('the manifest of a large sealed vault is the one that was signed, in its record and in its proof', async () => {
  const id = await largeVault()
  const sealed = await stage.call(org, 'POST', `/vaults/${id}/seal`, { summary: 'Done' })
  expect(sealed.status).toBe(200)
  const proof = await stage.call(org, 'GET', `/vaults/${id}/proof`)
  expect([proof.status, lengthOf(proof)], JSON.stringify(proof.body).slice(0, 500)).toEqual([200, null])
  expect(await verifySeal(proof.body, ed25519, await publishedKeys(stage.world))).toMatchObject({ ok: true })
  const { body } = await stage.call(org, 'GET', `/vaults/${id}`)
  expect(readManifest(body.manifest)).toEqual(readManifest(proof.body.manifest))
})

test('the seal of many items leaves turns to other requests between all parts of its work', async () => {
  const id = await largeVault(20_000)
  const used = () => {
    const { user, system } = process.cpuUsage()
    return user + system
  }
  const began = used()
  let [at, longest, isSealing] = [began, 0, true]
  const turn = () => {
    const now = used()
    longest = Math.max(longest, now - at)
    at = now
    if (isSealing) setImmediate(turn)
  }
  setImmediate(turn)
  expect((await stage.call(org, 'POST', `/vaults/${id}/seal`, {})).status).toBe(200)
  isSealing = false
  expect(longest / (used() - began)).toBeLessThan(0.1)
})

test('a read of a large sealed vault parses no manifest before the response is charged and read', async () => {
  const id = await largeVault()
  expect((await stage.call(org, 'POST', `/vaults/${id}/seal`, {})).status).toBe(200)
  const actor = { kind: 'api-key', apiKeyId: 'key_01h455vb4pex5vsknk084sn02q' } as const
  const ctx = { ...stage.ctx(org), actor }
  let parsed = 0
  const db = new Proxy(ctx.db, {
    get: (target, name) => {
      const found: unknown = Reflect.get(target, name)
      if (typeof found !== 'function') return found
      return (...given: readonly unknown[]) => {
        if (given.some((one) => String(Object(one).text).includes('manifest::jsonb'))) parsed += 1
        return Reflect.apply(found, target, given)
      }
    },
  })
  for (const response of [await getVault({ ...ctx, db }, id), await getProof({ ...ctx, db }, id, undefined)]) {
    expect(parsed).toBe(0)
    const { body } = Object(response)
    for await (const _ of body);
    expect(parsed).toBe(1)
    parsed = 0
  }
})
