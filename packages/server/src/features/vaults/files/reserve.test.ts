import { Readable } from 'node:stream'
import { fetch as undiciFetch } from 'undici'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { aFileStage, type FileStage, type FilledVault, mebibyte } from '../../../../test/files/file-stage.ts'
import { formOf, formType, hangingUpload } from '../../../../test/files/uploads.ts'
import { countersOf, hourMs } from '../../../../test/stories/vaults-stage.ts'
import { codeOf, countByStatus, parseAnswer } from '../../../../test/world.ts'
import { newBlobKey } from '../../../files/index.ts'
import { sql } from '../../../platform/db/db.ts'
import { id } from '../../../platform/ids.ts'
import { addToCounter, plans } from '../../plans/index.ts'
import { reserve, withinQuota } from './reserve.ts'

let stage: FileStage

beforeAll(async () => {
  stage = await aFileStage()
})
afterAll(() => stage?.world.stop())

/** A vault whose organisation has this many bytes of storage left. */
async function aVaultWithQuota(bytes: number): Promise<FilledVault> {
  const vault = await stage.aVault('pro')
  const ctx = stage.ctx(vault.org)
  await ctx.db.tx((tx) =>
    addToCounter(tx, { tenant: ctx.tenant, kind: 'storageBytes', period: 'all', n: plans.pro.storageBytes - bytes }),
  )
  return vault
}

const Reserved = z.object({ count: z.bigint().transform(Number), bytes: z.bigint().transform(Number) })

function reservedBy({ org }: FilledVault) {
  return stage.world.database.db.one(
    Reserved,
    sql`select count(*) as count, coalesce(sum(reserved_bytes), 0)::bigint as bytes from vault_uploads where organisation_id = ${org.id}`,
  )
}

test('parallel uploads reserve no more than the remaining storage: of sixty that hang, as many reserve bytes as fit, and the others are refused unread', async () => {
  const vault = await aVaultWithQuota(5 * mebibyte)
  const body = formOf({ filename: 'a.bin', content: Buffer.alloc(mebibyte) })
  const answers: string[] = []
  const sockets = await Promise.all(
    Array.from({ length: 60 }, async () => {
      const socket = await hangingUpload(
        stage.world.base,
        { key: vault.org.testKey, vaultId: vault.vaultId, body },
        300,
      )
      return socket.on('data', (data) => answers.push(String(data)))
    }),
  )
  await expect.poll(() => answers.length, { timeout: 60_000 }).toBe(55)
  for (const response of answers) expect(response).toMatch(/^HTTP\/1\.1 429 .*storage-quota-exceeded/s)
  const reserved = await reservedBy(vault)
  expect(reserved.count).toBe(5)
  expect(reserved.bytes).toBeLessThanOrEqual(5 * mebibyte)
  expect(reserved.bytes).toBeGreaterThan(5 * (mebibyte - 8_192))

  for (const socket of sockets) socket.destroy()
  await expect.poll(() => reservedBy(vault)).toEqual({ count: 0, bytes: 0 })
  expect((await vault.send({ content: Buffer.alloc(5 * mebibyte) })).status).toBe(201)
})

test('an upload without a length is stopped at the end of the remaining storage, and leaves nothing', async () => {
  const vault = await aVaultWithQuota(3 * mebibyte)
  const before = await stage.store()
  const send = async (bytes: number) => {
    const body = Readable.from(chunksOf(formOf({ filename: 'a.bin', content: Buffer.alloc(bytes) })))
    const headers = { authorization: `Bearer ${vault.org.testKey}`, 'content-type': formType }
    const url = `${stage.world.base}/vaults/${vault.vaultId}/files`
    const response = await undiciFetch(url, { method: 'POST', headers, body, duplex: 'half' })
    return parseAnswer(new Response(await response.text(), { status: response.status }))
  }
  const refused = await send(4 * mebibyte)
  expect([refused.status, codeOf(refused)]).toEqual([429, 'storage-quota-exceeded'])
  expect(await stage.store()).toEqual(before)
  expect((await send(3 * mebibyte)).status).toBe(201)
  expect((await countersOf(stage.world, vault.org)).storageBytes).toBe(plans.pro.storageBytes)
})

function* chunksOf(body: Uint8Array): Generator<Uint8Array> {
  for (let at = 0; at < body.length; at += 60_000) yield body.subarray(at, at + 60_000)
}

test('the end of an upload with a length is reserved at once, in however many chunks it arrives', async () => {
  const vault = await aVaultWithQuota(mebibyte)
  const ctx = stage.ctx(vault.org)
  let transactions = 0
  const tx: typeof ctx.db.tx = (...given) => {
    transactions += 1
    return ctx.db.tx(...given)
  }
  const counting = { ...ctx, db: { ...ctx.db, tx } }
  const upload = { blobKey: newBlobKey(ctx.random), vaultId: id('vlt').parse(vault.vaultId), announced: 20_000 }
  const reservation = await reserve(counting, plans.pro, upload)
  async function* content() {
    yield Buffer.alloc(15_910)
    for (let sent = 15_910; sent < 19_900; sent += 20) yield Buffer.alloc(20)
  }
  let bytes = 0
  for await (const chunk of withinQuota(counting, reservation, content())) bytes += chunk.byteLength
  expect(bytes).toBe(19_910)
  expect(transactions).toBe(3)
})

test('a small file in two pieces reserves at most its announced length, so that a parallel one gets the rest', async () => {
  const vault = await aVaultWithQuota(2_000)
  const ctx = stage.ctx(vault.org)
  const begin = async () => {
    const upload = { blobKey: newBlobKey(ctx.random), vaultId: id('vlt').parse(vault.vaultId), announced: 1_000 }
    return withinQuota(
      ctx,
      await reserve(ctx, plans.pro, upload),
      Readable.from([Buffer.alloc(400), Buffer.alloc(400)]),
    )
  }
  for (let uploads = 1; uploads <= 2; uploads += 1) {
    const pieces = await begin()
    for (let piece = 0; piece < 2; piece += 1) expect((await pieces.next()).value).toHaveLength(400)
    expect(await reservedBy(vault)).toEqual({ count: uploads, bytes: uploads * 1_000 })
  }
})

test('reservations of uploads block no document, and the last to be written is refused', async () => {
  const vault = await aVaultWithQuota(mebibyte)
  const body = formOf({ filename: 'a.bin', content: Buffer.alloc(mebibyte - 100) })
  const socket = await hangingUpload(stage.world.base, { key: vault.org.testKey, vaultId: vault.vaultId, body }, 300)
  await expect.poll(async () => (await reservedBy(vault)).count).toBe(1)
  const document = { name: 'a', data: { t: 'x'.repeat(1_000) } }
  expect((await stage.call(vault.org, 'POST', `/vaults/${vault.vaultId}/documents`, document)).status).toBe(201)
  const answered = new Promise<string>((resolve) => socket.once('data', (data) => resolve(String(data))))
  socket.write(body.subarray(300))
  expect(await answered).toMatch(/^HTTP\/1\.1 429 .*storage-quota-exceeded/s)
  socket.destroy()
})

test('a reservation whose process died ends with the sweep, after the longest time of an upload', async () => {
  const vault = await aVaultWithQuota(mebibyte)
  const { db } = stage.world.database
  await db.run(sql`
    insert into vault_uploads (blob_key, organisation_id, environment, vault_id, reserved_bytes, created_at)
    values (${`blob_${'d'.repeat(32)}`}, ${vault.org.id}, 'test', ${vault.vaultId}, ${mebibyte}, ${stage.now()})`)
  expect(codeOf(await vault.send({ content: 'x' }))).toBe('storage-quota-exceeded')
  stage.pass(hourMs)
  await stage.sweep()
  expect(codeOf(await vault.send({ content: 'x' }))).toBe('storage-quota-exceeded')
  stage.pass(1)
  await stage.sweep()
  expect((await vault.send({ content: 'x' })).status).toBe(201)
})

test('a plan without a limit reserves nothing and waits for no counter', async () => {
  const vault = await stage.aVault('enterprise')
  const answers = await Promise.all(Array.from({ length: 10 }, () => vault.send({ content: Buffer.alloc(100_000) })))
  expect(countByStatus(answers)).toEqual({ 201: 10 })
  expect(await reservedBy(vault)).toEqual({ count: 0, bytes: 0 })
})
