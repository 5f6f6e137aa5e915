import { createHash, randomBytes, randomInt } from 'node:crypto'
import { readdirSync, renameSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { sql } from '../../src/platform/db/db.ts'
import { freshDatabase, type TestDatabase } from '../database.ts'
import { formOf, upload } from '../files/uploads.ts'
import { request } from '../world.ts'
import { type Keeper, keepService } from './keeper.ts'
import { type Env, endEveryService, serveEnv, spawnWaiting } from './service.ts'
import { foundOrganisation } from './stage.ts'

const kills = Number(process.env.CRASH_KILLS ?? 5)
const senders = 6
const CountRow = z.object({ count: z.bigint().transform(Number) })

let database: TestDatabase
let env: Env
let keeper: Keeper
let key: string

beforeAll(async () => {
  database = await freshDatabase({ plans: 'general' })
  env = serveEnv(database.url)
  keeper = keepService({ prepare: () => spawnWaiting(env) })
  key = (await foundOrganisation(database.url)).testKey
})
afterAll(async () => {
  await endEveryService()
  await database?.drop()
})

interface Kept {
  readonly id: string
  readonly sha256: string
}

test('kill -9 in the middle of uploads keeps every acknowledged file, counts nothing else, and leaves nothing that is not swept', {
  timeout: 360_000,
}, async () => {
  await keeper.start()
  const vaultId = String((await ask('POST', '/vaults', {})).id)
  const kept: Kept[] = []
  const lost = { answers: 0 }
  let isOver = false
  const senderLoops = Array.from({ length: senders }, async () => {
    while (!isOver) await sendOne(vaultId, kept, lost)
  })
  for (let kill = 0; kill < kills; kill++) {
    const enough = kept.length + 1 + randomInt(6)
    await expect.poll(() => kept.length, { timeout: 90_000, interval: 5 }).toBeGreaterThanOrEqual(enough)
    await delay(randomInt(60))
    expect(await keeper.end('SIGKILL')).toBe('SIGKILL')
    if (kill < kills - 1) await keeper.start()
  }
  isOver = true
  expect(await count(sql`select count(*) as count from vault_uploads`)).toBeGreaterThan(0)
  await makeOld()
  await keeper.start()
  await Promise.all(senderLoops)
  expect(lost.answers, 'the kills met uploads under way').toBeGreaterThan(0)

  await expectFiles(vaultId, kept)
  await expect.poll(waiting, { timeout: 180_000, interval: 100 }).toBe(0)
  const stored = filesIn(path.join(env.FILES_DIR ?? '', 'blobs'))
  expect(stored).toBe(await count(sql`select count(*) as count from vault_files`))
  expect(filesIn(path.join(env.FILES_DIR ?? '', 'partial'))).toBe(0)
  console.log(`${kills} kills: ${kept.length} acknowledged, ${lost.answers} lost, ${stored} stored`)
  expect(await keeper.end('SIGTERM')).toBe(0)
})

async function ask(method: string, where: string, body?: unknown): Promise<Readonly<Record<string, unknown>>> {
  const response = await request(await keeper.where(), { key, method, path: where, body })
  expect(response.status, JSON.stringify(response.body)).toBeLessThan(300)
  return response.body
}

async function sendOne(vaultId: string, kept: Kept[], lost: { answers: number }): Promise<void> {
  const content = randomBytes(1_500_000)
  const body = formOf({ filename: 'a.bin', content })
  const base = await keeper.where()
  const response = await upload(base, { key, vaultId, body }).catch(() => undefined)
  if (response?.status === 201)
    kept.push({ id: String(response.body.id), sha256: createHash('sha256').update(content).digest('hex') })
  else lost.answers += 1
}

const State = z.object({ files: z.array(z.object({ id: z.string(), sha256: z.string(), size: z.number() })) })
const Usage = z.object({ storageBytes: z.object({ used: z.number() }) })

/** Every acknowledged file is there and complete, and the counter agrees with the rows. */
async function expectFiles(vaultId: string, kept: readonly Kept[]): Promise<void> {
  const { files } = State.parse(await ask('GET', `/vaults/${vaultId}`))
  expect(files.map(({ id, sha256 }) => ({ id, sha256 }))).toEqual(expect.arrayContaining([...kept]))
  for (const { id, sha256 } of kept.slice(-10)) {
    const headers = { authorization: `Bearer ${key}` }
    const got = await fetch(`${await keeper.where()}/vaults/${vaultId}/files/${id}`, { headers })
    const bytes = Buffer.from(await got.arrayBuffer())
    expect(createHash('sha256').update(bytes).digest('hex')).toBe(sha256)
  }
  const counted = Usage.parse(await ask('GET', '/billing/usage'))
  expect(counted.storageBytes.used).toBe(files.reduce((sum, { size }) => sum + size, 0))
  await ask('POST', '/billing/rebuild-cache')
  expect(Usage.parse(await ask('GET', '/billing/usage'))).toEqual(counted)
}

/** As if what the kills left behind were two hours old. */
async function makeOld(): Promise<void> {
  await database.db.run(sql`update vault_uploads set created_at = created_at - interval '2 hours'`)
  const partial = path.join(env.FILES_DIR ?? '', 'partial')
  for (const name of readdirSync(partial)) {
    const [started = '', rest = ''] = name.split('-')
    renameSync(path.join(partial, name), path.join(partial, `${Number(started) - 7_200_000}-${rest}`))
  }
}

async function waiting(): Promise<number> {
  const uploads = await count(sql`select count(*) as count from vault_uploads`)
  return (
    uploads +
    (await count(sql`select count(*) as count from blob_deletions`)) +
    filesIn(path.join(env.FILES_DIR ?? '', 'partial'))
  )
}

async function count(statement: ReturnType<typeof sql>): Promise<number> {
  return (await database.db.one(CountRow, statement)).count
}

function filesIn(directory: string): number {
  return readdirSync(directory, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile()).length
}
