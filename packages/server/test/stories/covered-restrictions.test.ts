import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { runAdmin } from '../../src/admin/run.ts'
import { sql } from '../../src/platform/db/db.ts'
import { aBrowser, browserOf, ownerOf } from '../people.ts'
import { timesCovered } from '../steady-witness.ts'
import { aWorld, type Org, type World } from '../world.ts'

const Id = z.object({ id: z.string() })
let world: World
let org: Org

beforeAll(async () => {
  world = await aWorld({ rpcUrls: { 'base-sepolia': ['http://127.0.0.1:1'] } })
  org = await world.organisation()
})
afterAll(() => world.stop())

const call = (method: string, path: string, body?: unknown) => world.call(org.liveKey, method, path, body)

async function aKey(): Promise<string> {
  const { body } = await call('POST', '/organisations/current/api-keys', { name: 'leaked', environment: 'live' })
  return Id.parse(body).id
}

const members = '/organisations/current/members'
const unknownId = 'wh_01h455vb4pex5vsknk084sn02q'
const bankAccounts = '/wallet-infra/bank-accounts'
const usdAccount = {
  accountName: 'Acme Inc',
  currency: 'USD',
  routingNumber: '021000021',
  accountNumber: '987654321',
}

async function aMember() {
  const owner = await aBrowser(world, { email: await ownerOf(world, org.id), organisationId: org.id })
  const { body } = await owner.call('POST', members, { email: 'm@acme.example', role: 'admin' })
  const path = `${members}/${z.object({ accountId: z.string() }).parse(body).accountId}`
  return async (method: string, change?: object) => (await owner.call(method, path, change)).status
}

async function aPerson() {
  return aBrowser(world, { email: await ownerOf(world, org.id), organisationId: org.id })
}

async function admin(...args: string[]): Promise<number> {
  const { files } = world.config
  const FILES_DIR = 'directory' in files ? files.directory : ''
  const { exitCode, stderr } = await runAdmin(args, { DATABASE_URL: world.database.url, FILES_DIR })
  if (exitCode !== 0) throw new Error(stderr)
  return 204
}

async function aPolicyOf(perDay: string): Promise<() => Promise<number>> {
  const masters = '/wallet-infra/master-wallets'
  const made = await world.call(org.testKey, 'POST', masters, { chain: 'base', supportedTokens: ['USDC'] })
  const path = `${masters}/${Id.parse(made.body).id}/policy`
  const policy = { operations: { transfer: { recipients: 'any' } }, tokens: { USDC: { perDay } } }
  return async () => (await world.call(org.testKey, 'PUT', path, policy)).status
}

/** Each makes what is restricted, and returns the restriction, which resolves to a status. */
const restrictions: readonly (readonly [string, () => Promise<() => Promise<number>>])[] = [
  [
    'the revocation of a key',
    async () => {
      const id = await aKey()
      return async () => (await call('DELETE', `/organisations/current/api-keys/${id}`)).status
    },
  ],
  ['a policy', () => aPolicyOf('5')],
  [
    'the removal of a member',
    async () => {
      const change = await aMember()
      return () => change('DELETE')
    },
  ],
  [
    'a lower role',
    async () => {
      const change = await aMember()
      return () => change('PATCH', { role: 'viewer' })
    },
  ],
  [
    'the end of a session',
    async () => {
      const [person, other] = [await aPerson(), await aPerson()]
      const { list } = await other.call('GET', '/account/sessions')
      const id = list.find(({ isCurrent }) => isCurrent === true)?.id
      return async () => (await person.call('DELETE', `/account/sessions/${id}`)).status
    },
  ],
  [
    'a sign-out',
    async () => {
      const person = await aPerson()
      return async () => (await person.call('POST', '/auth/sign-out')).status
    },
  ],
  [
    'the revocation of a vault token',
    async () => {
      const vault = Id.parse((await call('POST', '/vaults', {})).body).id
      const token = Id.parse((await call('POST', `/vaults/${vault}/tokens`, { kind: 'token' })).body).id
      return async () => (await call('DELETE', `/vaults/${vault}/tokens/${token}`)).status
    },
  ],
  [
    'the deletion of a bank account',
    async () => {
      const id = Id.parse((await world.call(org.testKey, 'POST', bankAccounts, usdAccount)).body).id
      return async () => (await world.call(org.testKey, 'DELETE', `${bankAccounts}/${id}`)).status
    },
  ],
  [
    'the deletion of a webhook',
    async () => {
      const made = await call('POST', '/webhooks', { url: 'https://receiver.example/', events: ['*'] })
      const { id } = Id.parse(made.body)
      return async () => (await call('DELETE', `/webhooks/${id}`)).status
    },
  ],
  [
    'a revocation by the operator',
    async () => {
      const id = await aKey()
      return () => admin('revoke-key', '--key', id)
    },
  ],
  [
    'revocations of all keys by the operator',
    async () => {
      const { id } = await world.organisation()
      return () => admin('revoke-all-keys', '--organisation', id)
    },
  ],
  [
    'a suspension',
    async () => {
      const { id } = await world.organisation()
      return () => admin('suspend-organisation', '--organisation', id, '--reason', 'stolen')
    },
  ],
]

// The first call may have failed because no mark could be made, after its change was committed.
test.each(restrictions)('the witness covers %s before the response, and a repetition too', async (_of, prepare) => {
  const restrict = await prepare()
  for (const expected of [
    [200, 204],
    [200, 204, 404],
  ]) {
    const before = await timesCovered(world.database.db)
    expect(expected).toContain(await restrict())
    expect(await timesCovered(world.database.db)).toBeGreaterThan(before)
  }
})

const repetitions: readonly (readonly [string, () => Promise<() => Promise<number>>])[] = [
  [
    'the revocation of the tokens of a vault that has none',
    async () => {
      const vault = Id.parse((await call('POST', '/vaults', {})).body).id
      return async () => (await call('DELETE', `/vaults/${vault}/tokens`)).status
    },
  ],
  [
    'the revocation of a revoked key',
    async () => {
      const id = await aKey()
      const revoke = async () => (await call('DELETE', `/organisations/current/api-keys/${id}`)).status
      await revoke()
      return revoke
    },
  ],
  [
    'the deletion of an unknown webhook',
    async () => async () => (await call('DELETE', `/webhooks/${unknownId}`)).status,
  ],
]

test.each(repetitions)('repetitions of %s are covered once a second, however many there are', async (_of, prepare) => {
  const repeat = await prepare()
  const [before, begunAt] = [await timesCovered(world.database.db), performance.now()]
  const repeated: Promise<number>[] = []
  for (let count = 0; count < 20; count++) {
    repeated.push(repeat())
    // Each has time to be covered before the next one.
    await call('GET', '/organisations/current')
  }
  await Promise.all(repeated)
  const seconds = Math.ceil((performance.now() - begunAt) / 1_000)
  expect(Number((await timesCovered(world.database.db)) - before)).toBeLessThanOrEqual(seconds + 1)
})

test('a sign-out with a cookie that the service did not sign is not covered', async () => {
  const { cookie } = await aPerson()
  const before = await timesCovered(world.database.db)
  for (const forged of [cookie.replace(/.%3D$|.$/, ''), `${cookie.split('=')[0]}=a.b`])
    expect((await browserOf(world, { cookie: forged }).call('POST', '/auth/sign-out')).status).toBe(200)
  expect(await timesCovered(world.database.db)).toBe(before)
})

test('a command that no mark can cover says that its change is stored', async () => {
  const { id } = await world.organisation()
  const args = ['suspend-organisation', '--organisation', id, '--reason', 'stolen']
  const env = { DATABASE_URL: world.database.url, WITNESS_DIR: '/dev/null/marks' }
  const { exitCode, stderr } = await runAdmin(args, env)
  expect(exitCode).toBe(1)
  expect(stderr).toContain('the change is stored')
  const { isSuspended } = await world.database.db.one(
    z.object({ isSuspended: z.boolean() }),
    sql`select suspended_at is not null as is_suspended from organisations where id = ${id}`,
  )
  expect(isSuspended).toBe(true)
})
