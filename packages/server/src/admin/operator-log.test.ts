import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { aWorld, type World } from '../../test/world.ts'
import { sql } from '../platform/db/db.ts'
import { runAdmin } from './run.ts'

let world: World

beforeAll(async () => {
  world = await aWorld()
})
afterAll(() => world?.stop())

const key = () => String((world.config.keyEncryption as { base64: string }).base64)

function admin(...args: readonly string[]) {
  return runAdmin(args, { DATABASE_URL: world.database.url, KEY_ENCRYPTION_KEY: key() })
}

const Rotation = z.object({ current: z.string(), retired: z.string() })
const Records = z.array(z.object({ action: z.string(), target: z.string(), actor: z.unknown(), details: z.unknown() }))

async function rotated(...args: readonly string[]) {
  return Rotation.parse(JSON.parse((await admin(...args, '--format', 'json')).stdout))
}

async function operatorLog() {
  return Records.parse(JSON.parse((await admin('admin', 'operator-log', '--format', 'json')).stdout))
}

test('key rotations of the deployment are in the operator’s log with the old and the new key, and in no organisation’s log', async () => {
  expect((await admin('admin', 'operator-log')).stdout).toBe('no records\n')
  const seal = await rotated('keys', 'rotate-seal')
  const mpp = await rotated('admin', 'rotate-mpp-secret')
  const actor = { kind: 'operator' }
  expect(await operatorLog()).toEqual([
    { action: 'keys.rotateMppSecret', target: mpp.current, actor, details: { retired: mpp.retired } },
    { action: 'keys.rotateSeal', target: seal.current, actor, details: { retired: seal.retired } },
  ])
  const org = await world.organisation()
  const { list } = await world.call(org.liveKey, 'GET', '/organisations/current/audit-log')
  expect(list.filter(({ action }) => String(action).startsWith('keys.'))).toEqual([])
})

test('a leaked seal key is withdrawn once, a new key takes its place, and both are in the operator’s log', async () => {
  const { current: leaked } = await rotated('keys', 'rotate-seal')
  const withdraw = (kid: string) => admin('keys', 'withdraw-seal', '--key', kid, '--format', 'json')
  const withdrawn = await withdraw(leaked)
  expect(withdrawn.exitCode).toBe(0)
  const { current } = z.object({ current: z.string() }).parse(JSON.parse(withdrawn.stdout))
  expect(current).not.toBe(leaked)
  const [record] = await operatorLog()
  expect(record).toMatchObject({ action: 'keys.withdrawSeal', target: leaked, details: { current } })
  const count = (await operatorLog()).length
  expect((await withdraw(leaked)).exitCode).toBe(1)
  expect((await withdraw('seal-0123456789abcdef')).exitCode).toBe(1)
  expect(await operatorLog()).toHaveLength(count)
})

test('a rotation that changes nothing leaves no record', async () => {
  const before = await operatorLog()
  expect((await admin('keys', 'rotate')).exitCode).toBe(0)
  expect(await operatorLog()).toEqual(before)
})

test('a rotation whose record cannot be written is rolled back', async () => {
  const current = () =>
    world.database.db.one(
      z.object({ kid: z.string() }),
      sql`select kid from sealed_keys where purpose = 'seal' and retired_at is null`,
    )
  const before = await current()
  await world.database.db.run({ text: 'alter table audit_log rename to audit_log_away', values: [] })
  try {
    expect((await admin('keys', 'rotate-seal')).exitCode).toBe(1)
  } finally {
    await world.database.db.run({ text: 'alter table audit_log_away rename to audit_log', values: [] })
  }
  expect(await current()).toEqual(before)
})

test('verify-audit-log covers the operator’s log', async () => {
  await rotated('keys', 'rotate-seal')
  expect((await admin('admin', 'verify-audit-log')).stdout).toMatch(/^operator {2}intact, [1-9]\d* records$/m)
  await world.database.db.run(
    sql`update audit_log set target = 'another' where organisation_id = 'operator' and sequence = 1`,
  )
  const broken = await admin('admin', 'verify-audit-log')
  expect([broken.exitCode, broken.stderr]).toEqual([1, expect.stringContaining('operator  BROKEN at record 1')])
})
