import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { boundary, type FormPart, formOf, formType, hangingUpload, upload } from '../../../../test/files/uploads.ts'
import { aVaultStage, countersOf, type VaultStage } from '../../../../test/stories/vaults-stage.ts'
import { type Answer, codeOf, countByStatus, type Org } from '../../../../test/world.ts'
import { sql } from '../../../platform/db/db.ts'

let stage: VaultStage
let org: Org
const content = randomBytes(300_000)
const CountRow = z.object({ count: z.bigint() })

beforeAll(async () => {
  stage = await aVaultStage()
  org = await stage.world.organisation()
})
afterAll(() => stage?.world.stop())

function send(vaultId: string, key: string, part: Partial<FormPart> = {}): Promise<Answer> {
  const body = formOf({ filename: 'report.bin', content, ...part })
  return upload(stage.world.base, { key: org.testKey, vaultId, body, headers: { 'idempotency-key': key } })
}

/** Resolves once the first request with the key is under way. */
async function claimed(key: string): Promise<void> {
  const count = async () =>
    (
      await stage.world.database.db.one(
        CountRow,
        sql`select count(*) as count from idempotency_keys where key = ${key}`,
      )
    ).count
  await expect.poll(count).toBe(1n)
}

async function filesOf(vaultId: string): Promise<unknown> {
  return (await stage.call(org, 'GET', `/vaults/${vaultId}`)).body.files
}

test('the same Idempotency-Key with the same file is answered as the first time, whatever the form’s boundary', async () => {
  const vaultId = await stage.vault(org)
  const first = await send(vaultId, 'k1')
  const again = await send(vaultId, 'k1')
  expect([first.status, again.status, again.body]).toEqual([201, 201, first.body])
  expect([first, again].map(({ headers }) => headers.get('idempotency-replayed'))).toEqual([null, 'true'])
  const text = Buffer.from(formOf({ filename: 'report.bin', content })).toString('latin1')
  const otherBody = new Uint8Array(Buffer.from(text.replaceAll(boundary, 'another'), 'latin1'))
  const other = await upload(stage.world.base, {
    key: org.testKey,
    vaultId,
    body: otherBody,
    headers: { 'idempotency-key': 'k1', 'content-type': formType.replace(boundary, 'another') },
  })
  expect(other.body).toEqual(first.body)
  expect(await filesOf(vaultId)).toHaveLength(1)
})

test('the same key with another file, name, type or vault is refused, and nothing is kept', async () => {
  const [vaultId, otherVault] = [await stage.vault(org), await stage.vault(org)]
  expect((await send(vaultId, 'k2')).status).toBe(201)
  for (const refused of [
    await send(vaultId, 'k2', { content: randomBytes(300_000) }),
    await send(vaultId, 'k2', { filename: 'other.bin' }),
    await send(vaultId, 'k2', { type: 'text/plain' }),
    await send(otherVault, 'k2'),
    await stage.world.call(org.testKey, 'POST', '/vaults', {}, { 'idempotency-key': 'k2' }),
  ])
    expect([refused.status, codeOf(refused)]).toEqual([422, 'idempotency-key-reused'])
  expect([await filesOf(vaultId), await filesOf(otherVault)]).toEqual([[expect.anything()], []])
})

test('a key that another request used is refused for a file', async () => {
  const made = await stage.world.call(org.testKey, 'POST', '/vaults', {}, { 'idempotency-key': 'k3' })
  expect(codeOf(await send(String(made.body.id), 'k3'))).toBe('idempotency-key-reused')
  expect(await filesOf(String(made.body.id))).toEqual([])
})

test('of twenty parallel copies of one upload one is stored, and the others get its answer or must wait', async () => {
  const vaultId = await stage.vault(org)
  const answers = await Promise.all(Array.from({ length: 20 }, () => send(vaultId, 'k4')))
  const counts = countByStatus(answers)
  expect((counts[201] ?? 0) + (counts[409] ?? 0)).toBe(20)
  expect(counts[201]).toBeGreaterThan(0)
  expect(new Set(answers.filter(({ status }) => status === 201).map(({ body }) => body.id)).size).toBe(1)
  expect(await filesOf(vaultId)).toHaveLength(1)
})

test('an upload that was interrupted or refused leaves its key free for the next attempt', async () => {
  const vaultId = await stage.vault(org)
  const body = formOf({ filename: 'report.bin', content })
  const headers = { 'idempotency-key': 'k5' }
  const socket = await hangingUpload(stage.world.base, { key: org.testKey, vaultId, body, headers }, 100_000)
  await claimed('k5')
  expect(codeOf(await send(vaultId, 'k5'))).toBe('idempotency-in-progress')
  socket.destroy()
  await expect.poll(async () => (await send(vaultId, 'k5')).status).toBe(201)
  expect(await filesOf(vaultId)).toHaveLength(1)

  expect((await send(vaultId, 'k6', { filename: '' })).status).toBe(422)
  expect((await send(vaultId, 'k6')).status).toBe(201)
})

test('a repeat of an upload whose answer was never stored returns the file that it made', async () => {
  const vaultId = await stage.vault(org)
  const first = await send(vaultId, 'k7')
  await stage.world.database.db.run(
    sql`update idempotency_keys set state = 'running', status = null, headers = null, sealed_body = null where key = 'k7'`,
  )
  const again = await send(vaultId, 'k7')
  expect([again.status, again.body, again.headers.get('idempotency-replayed')]).toEqual([201, first.body, 'true'])
  expect(codeOf(await send(vaultId, 'k7', { filename: 'other.bin' }))).toBe('idempotency-key-reused')
  expect(await filesOf(vaultId)).toHaveLength(1)
})

test('of an upload whose lease expired and its repeat, one is stored', async () => {
  const vaultId = await stage.vault(org)
  const before = await countersOf(stage.world, org)
  const body = formOf({ filename: 'report.bin', content })
  const headers = { 'idempotency-key': 'k8' }
  const socket = await hangingUpload(stage.world.base, { key: org.testKey, vaultId, body, headers }, 100_000)
  await claimed('k8')
  expect(codeOf(await send(vaultId, 'k8'))).toBe('idempotency-in-progress')
  stage.pass(61_000)
  const repeat = await send(vaultId, 'k8')
  expect(repeat.status).toBe(201)
  const answered = new Promise<string>((resolve) => socket.once('data', (data) => resolve(String(data))))
  socket.write(body.subarray(100_000))
  expect(await answered).toMatch(/^HTTP\/1\.1 409 .*idempotency-in-progress/s)
  socket.destroy()
  expect(await filesOf(vaultId)).toEqual([{ ...repeat.body, url: expect.any(String) }])
  expect((await countersOf(stage.world, org)).storageBytes).toBe((before.storageBytes ?? 0) + content.length)
  expect((await send(vaultId, 'k8')).body.id).toBe(repeat.body.id)
})
