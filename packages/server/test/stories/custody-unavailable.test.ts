import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { sql } from '../../src/platform/db/db.ts'
import { type AwsKms, keyArn, startAwsKms } from '../custody/aws-kms.ts'
import { type Answer, aWorld, codeOf, type Org, type World } from '../world.ts'

let kms: AwsKms
let world: World

beforeAll(async () => {
  kms = await startAwsKms()
  const keyEncryption = { awsKms: { keyArn, endpoint: kms.endpoint } }
  world = await aWorld({ config: { keyEncryption, createKeyEncryptionKey: true } })
})
afterEach(() => {
  kms.trouble = 'none'
})
afterAll(async () => {
  await world?.stop()
  kms?.stop()
})

const Count = z.object({ count: z.bigint() })

/** All rows that creating a wallet writes. */
async function leftBy({ id }: Org): Promise<Record<string, bigint>> {
  const { db } = world.database
  const statements = {
    wallets: sql`select count(*) as count from master_wallets where organisation_id = ${id}`,
    seeds: sql`select count(*) as count from wallet_seeds where organisation_id = ${id}`,
    keys: sql`select count(*) as count from idempotency_keys where organisation_id = ${id}`,
    audit: sql`select count(*) as count from audit_log where organisation_id = ${id} and action like 'wallets.%'`,
  }
  const counts = await Promise.all(
    Object.entries(statements).map(async ([name, one]) => [name, (await db.one(Count, one)).count]),
  )
  return Object.fromEntries(counts)
}

const body = { chain: 'base', supportedTokens: ['USDC'], name: 'Treasury' }
const make = (org: Org, key: string): Promise<Answer> =>
  world.call(org.testKey, 'POST', '/wallet-infra/master-wallets', body, { 'idempotency-key': key })

test.each([
  ['no seed yet', false],
  ['a seed already', true],
])(
  'a wallet requested while the key service is down, by a tenant with %s, is 503 and writes nothing; the same request creates it later',
  async (_, hasSeed) => {
    const org = await world.organisation()
    if (hasSeed) await make(org, 'before')
    const before = await leftBy(org)
    kms.trouble = 'cut'
    const refused = await make(org, 'once')
    expect([refused.status, codeOf(refused), refused.headers.get('retry-after')]).toEqual([
      503,
      'custody-unavailable',
      '5',
    ])
    expect(JSON.stringify(refused.body)).not.toContain('arn:')
    expect(await leftBy(org)).toEqual(before)

    kms.trouble = 'none'
    const made = await make(org, 'once')
    expect(made.status).toBe(201)
    const again = await make(org, 'once')
    expect([again.status, again.headers.get('idempotency-replayed'), again.body]).toEqual([201, 'true', made.body])
    expect(await leftBy(org)).toMatchObject({ wallets: (before.wallets ?? 0n) + 1n, seeds: 1n })
  },
)

test('the legacy wallet requested while the key service is down is 503 and is created by the same request later', async () => {
  const org = await world.organisation()
  kms.trouble = { status: 500, type: 'KMSInternalException' }
  const refused = await world.call(org.testKey, 'POST', '/wallets', {})
  expect([refused.status, codeOf(refused)]).toEqual([503, 'custody-unavailable'])
  kms.trouble = 'none'
  expect((await world.call(org.testKey, 'POST', '/wallets', {})).status).toBe(201)
})

test('work with keys that are already open continues while the key service is down', async () => {
  const org = await world.organisation()
  const { id: walletId } = await world.wallet(org)
  const { body: master } = await make(org, 'first')
  kms.trouble = 'cut'
  const statuses = []
  const child = `/wallet-infra/master-wallets/${master.id}/child-addresses`
  statuses.push((await world.call(org.testKey, 'POST', child, { name: 'a' })).status)
  const requested = { walletId, resource: 'https://a.example.com/x', price: '0.01' }
  statuses.push((await world.call(org.testKey, 'POST', '/payments/challenge', requested)).status)
  const bought = { ...requested, protocol: 'x402', credential: 'stub_payment_accepted' }
  statuses.push((await world.call(org.testKey, 'POST', '/payments/verify', bought)).status)
  const vault = await world.call(org.testKey, 'POST', '/vaults', {})
  statuses.push((await world.call(org.testKey, 'POST', `/vaults/${vault.body.id}/seal`, {})).status)
  expect(statuses).toEqual([201, 200, 200, 200])
})
