import { execFile, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { hdChildAddress } from '@purser/protocol'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { createSignatures } from '../../src/chain/index.ts'
import type { Tenant } from '../../src/platform/ctx.ts'
import { sql } from '../../src/platform/db/db.ts'
import { auditedOf } from '../audited.ts'
import { aWorld, type Org, type World } from '../world.ts'

const program = fileURLToPath(new URL('../../src/admin/main.ts', import.meta.url))
const [oldKey, newKey] = [randomBytes(32).toString('base64'), randomBytes(32).toString('base64')]
const tenantsMax = 12

let world: World
let org: Org
const tenants: Tenant[] = []

beforeAll(async () => {
  world = await aWorld({
    config: { keyEncryption: { base64: oldKey }, keyEncryptionAlso: [{ base64: newKey }] },
  })
  org = await world.organisation()
  for (let index = 0; index < tenantsMax / 2; index++) {
    const { id } = await world.organisation()
    for (const environment of ['test', 'live'] as const)
      tenants.push({ organisationId: id as Tenant['organisationId'], environment })
  }
  for (const tenant of tenants) await world.server.deps.walletKeys.accountNode(tenant, 0)
})
afterAll(() => world?.stop())

const environment = () => ({
  DATABASE_URL: world.database.url,
  KEY_ENCRYPTION_KEY: newKey,
  KEY_ENCRYPTION_ALSO: `base64:${oldKey}`,
})

/** The number of seeds sealed under a key-encryption key. */
async function seedsUnder(fingerprint: string): Promise<number> {
  const Row = z.object({ rows: z.bigint() })
  const { rows } = await world.database.db.one(
    Row,
    sql`select count(*) as rows from wallet_seeds where fingerprint = ${fingerprint}`,
  )
  return Number(rows)
}

async function currentFingerprint(): Promise<string> {
  const Row = z.object({ fingerprint: z.string() })
  const statement = sql`select fingerprint from key_encryption_keys where retired_at is null`
  return (await world.database.db.one(Row, statement)).fingerprint
}

/** Does everything for which the service opens a sealed key. */
async function serves({ server, base }: Pick<World, 'server' | 'base'>): Promise<void> {
  const { walletKeys, serviceSeal } = server.deps
  const curve = await createSignatures()
  const accounts = await Promise.all(
    tenants.map(async (tenant) => {
      const node = await walletKeys.accountNode(tenant, 0)
      const address = hdChildAddress(node, 0, curve)
      return walletKeys.signer(tenant, { account: 0, index: 0, address }).signTransaction(fields)
    }),
  )
  expect(accounts).toHaveLength(tenantsMax)
  expect(await serviceSeal.sign(Buffer.from('sealed'))).toHaveLength(64)
  const response = await fetch(`${base}/account`, { headers: { authorization: `Bearer ${org.testKey}` } })
  expect(response.status).toBe(200)
}

test('a rotation that is killed in the middle under a serving process is finished by the next, without an interruption', async () => {
  const before = await currentFingerprint()
  let rotation: ReturnType<typeof spawn> | undefined
  await world.database.db.tx(async (tx) => {
    const Row = z.object({ id: z.string() })
    await tx.one(
      Row,
      sql`select id from wallet_seeds where id =
        (select id from wallet_seeds order by id offset ${tenantsMax / 2} limit 1) for update`,
    )
    rotation = spawn(process.execPath, [program, 'keys', 'rotate'], { env: environment(), stdio: 'ignore' })
    while ((await seedsUnder(before)) > tenantsMax / 2) await serves(world)
    rotation.kill('SIGKILL')
    await once(rotation, 'exit')
  })
  expect(rotation?.signalCode).toBe('SIGKILL')
  const [after, left] = [await currentFingerprint(), await seedsUnder(before)]
  expect(after).not.toBe(before)
  expect(left).toBeGreaterThanOrEqual(tenantsMax / 2 - 1)
  await serves(world)
  const restarted = await world.another({ keyEncryption: { base64: newKey }, keyEncryptionAlso: [{ base64: oldKey }] })
  await serves(restarted)
  await expect(world.another({ keyEncryption: { base64: newKey }, keyEncryptionAlso: [] })).rejects.toThrow(before)

  const { stdout, stderr } = await promisify(execFile)(process.execPath, [program, 'keys', 'rotate'], {
    env: environment(),
  })
  expect(stdout).toContain('No data key uses another key any more')
  for (const key of [oldKey, newKey]) expect(stdout + stderr).not.toContain(key.slice(0, 12))
  expect([await seedsUnder(before), await seedsUnder(after)]).toEqual([0, tenantsMax])
  const audited = await auditedOf(world.database.db, after)
  expect(audited).toEqual([
    { action: 'keys.rotate', actor: { kind: 'operator' }, details: { from: before } },
    { action: 'keys.rewrap', actor: { kind: 'operator' }, details: { rewrapped: expect.any(Object), failed: [] } },
  ])
  await serves(world)
  await serves(await world.another({ keyEncryption: { base64: newKey }, keyEncryptionAlso: [] }))
  await expect(world.another({ keyEncryption: { base64: oldKey }, keyEncryptionAlso: [] })).rejects.toThrow(
    /is not the one/,
  )
})

test('without keys in the environment the command says what to set', async () => {
  const { DATABASE_URL } = environment()
  const bare = promisify(execFile)(process.execPath, [program, 'keys', 'rotate'], { env: { DATABASE_URL } })
  await expect(bare).rejects.toMatchObject({ code: 1, stderr: expect.stringContaining('KEY_ENCRYPTION_KEY_FILE') })
  const { stdout } = await promisify(execFile)(process.execPath, [program, 'keys', 'rotate', '--help'])
  expect(stdout).toContain('purser keys rotate')
})

const fields = {
  chainId: 84_532,
  nonce: 0n,
  maxPriorityFeePerGas: 1n,
  maxFeePerGas: 2n,
  gasLimit: 21_000n,
  to: '0x036CbD53842c5426634e7929541eC2318f3dCF7e',
  value: 0n,
  data: '0x',
} as const
