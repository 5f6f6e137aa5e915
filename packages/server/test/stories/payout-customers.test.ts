import { type DevChain, startChain } from '@purser/devnet'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import { assignPayoutCustomer, removePayoutAccounts } from '../../src/features/withdrawals/index.ts'
import { sql } from '../../src/platform/db/db.ts'
import { systemCtx } from '../../src/platform/work/runner.ts'
import { aBridge, type BridgeDouble } from '../bridge-double.ts'
import { aLiveStage, type LiveStage } from '../live-stage.ts'
import type { Managed } from '../partner-stage.ts'
import { type Answer, codeOf, type Org } from '../world.ts'

let base: DevChain
let bridge: BridgeDouble
let stage: LiveStage
let master: Managed
let account: string

beforeAll(async () => {
  base = await startChain({ network: 'base' })
  bridge = await aBridge()
  const { url: baseUrl, webhookPublicKey } = bridge
  stage = await aLiveStage([base], { bridge: { baseUrl, apiKey: 'sk-bridge', webhookPublicKey } })
})
afterAll(async () => {
  await stage?.stop()
  await bridge?.stop()
  await base?.stop()
})
beforeEach(async () => {
  bridge.instead = () => undefined
  master = await stage.aMaster()
  account = await bankAccountOf(stage.org)
})

const gbp = { accountName: 'Acme Ltd', currency: 'GBP', sortCode: '20-29-59', accountNumber: '63748472' }

async function bankAccountOf({ liveKey }: Org): Promise<string> {
  return String((await stage.world.call(liveKey, 'POST', '/wallet-infra/bank-accounts', gbp)).body.id)
}

function withdraw(bankAccountId = account, { liveKey } = stage.org, fromWalletId = master.id): Promise<Answer> {
  const moved = { token: 'USDC', chain: 'base', amount: '60', bankAccountId, reference: 'Invoice 7' }
  return stage.world.call(liveKey, 'POST', '/wallet-infra/withdraw', { fromWalletId, ...moved })
}

const remove = (id = account): Promise<Answer> =>
  stage.world.call(stage.org.liveKey, 'DELETE', `/wallet-infra/bank-accounts/${id}`)
const operator = () => ({ ...systemCtx(stage.world.server.deps), actor: { kind: 'operator' } }) as const
const atBridge = (id = account) => bridge.accounts.filter(({ key }) => key === id).map(({ customerId }) => customerId)

/** One pass of the work, with every later attempt due now. The service's own pass may have an account at that moment and end later: poll for the result. */
async function turn(): Promise<void> {
  await stage.world.database.db.run(
    sql`update payout_accounts set remove_at = now() - interval '1 hour' where remove_at is not null`,
  )
  await removePayoutAccounts.run(systemCtx(stage.world.server.deps))
}

const Kept = z.object({ hasDetails: z.boolean(), removed: z.bigint(), waiting: z.bigint() })
const kept = (id = account) =>
  stage.world.database.db.one(
    Kept,
    sql`
    select details is not null as has_details, (select count(*) from payout_accounts where bank_account_id = ${id} and removed_at is not null) as removed,
      (select count(*) from payout_accounts where bank_account_id = ${id} and remove_at is not null) as waiting
    from bank_accounts where id = ${id}`,
  )

test('each organisation is a separate customer at the partner, and one without a customer withdraws nothing', async () => {
  const other = await stage.world.organisation()
  const { body } = await stage.world.call(other.liveKey, 'POST', '/wallet-infra/master-wallets', {
    ...{ chain: 'base', supportedTokens: ['USDC'] },
  })
  const requested = bridge.requested.length
  await stage.world.database.db.run(sql`delete from payout_customers where organisation_id = ${stage.org.id}`)
  const refused = await withdraw()
  expect([refused.status, codeOf(refused)]).toEqual([422, 'payouts-not-enabled'])
  expect(bridge.requested).toHaveLength(requested)
  expect(await assignPayoutCustomer(operator(), stage.org.id, { partner: 'bridge', customerId: 'cust_alice' })).toBe(
    true,
  )
  expect(await assignPayoutCustomer(operator(), other.id, { partner: 'bridge', customerId: 'cust_alice' })).toBe(false)
  expect(
    await assignPayoutCustomer(operator(), 'org_01h455vb4pex5vsknk084sn02q', {
      partner: 'bridge',
      customerId: 'cust_carol',
    }),
  ).toBe(false)
  expect(await assignPayoutCustomer(operator(), other.id, { partner: 'bridge', customerId: 'cust_bob' })).toBe(true)
  expect((await withdraw()).status).toBe(201)
  expect(atBridge()).toEqual(['cust_alice'])
  const behalf = bridge.requested.filter(({ path }) => path === '/transfers').at(-1)?.body
  expect(behalf).toMatchObject({ on_behalf_of: 'cust_alice' })
  const foreign = await withdraw(account, other, String(body.id))
  expect([foreign.status, codeOf(foreign)]).toEqual([422, 'bank-account-not-found'])
})

test('of two organisations that claim one customer at the same moment one gets it', async () => {
  const claimants = await Promise.all(Array.from({ length: 4 }, () => stage.world.organisation()))
  const claims = await Promise.allSettled(
    claimants.map(({ id }) => assignPayoutCustomer(operator(), id, { partner: 'bridge', customerId: 'cust_wanted' })),
  )
  expect(claims.filter((claim) => claim.status === 'fulfilled' && claim.value)).toHaveLength(1)
})

test('a deleted bank account is deleted at the partner, once no payout to it is open', async () => {
  const made = await withdraw()
  expect([made.status, atBridge()]).toEqual([201, ['cust_alice']])
  expect((await remove()).status).toBe(204)
  expect(await kept()).toMatchObject({ hasDetails: false, waiting: 1n })
  await turn()
  expect(atBridge()).toEqual(['cust_alice'])
  await stage.world.database.db.run(
    sql`update withdrawals set status = 'completed', next_look_at = null where id = ${String(made.body.id)}`,
  )
  bridge.instead = ({ method }) => (method === 'DELETE' ? { status: 500, json: {} } : undefined)
  await turn()
  expect([atBridge(), (await kept()).waiting]).toEqual([['cust_alice'], 1n])
  bridge.instead = () => undefined
  await Promise.all([turn(), turn()])
  await expect
    .poll(async () => [atBridge(), await kept()])
    .toEqual([[], { hasDetails: false, removed: 1n, waiting: 0n }])
})

test('an account whose creation at the partner lost its answer is deleted there too, and its details are then erased', async () => {
  bridge.instead = ({ method, path, headers }) => {
    if (method !== 'POST' || !path.endsWith('/external_accounts')) return undefined
    Object.assign(bridge.accounts, [...bridge.accounts, lostAccount(headers['idempotency-key'] ?? '')])
    return { status: 500, json: {} }
  }
  expect((await withdraw()).status).toBe(503)
  expect(atBridge()).toEqual(['cust_alice'])
  bridge.instead = ({ method }) => (method === 'DELETE' ? { status: 500, json: {} } : undefined)
  expect((await remove()).status).toBe(204)
  expect((await kept()).hasDetails).toBe(true)
  bridge.instead = () => undefined
  await turn()
  await expect
    .poll(async () => [atBridge(), await kept()])
    .toEqual([[], { hasDetails: false, removed: 1n, waiting: 0n }])
})

const lostAccount = (key: string) => ({ id: `external_account_${key}_cust_alice`, customerId: 'cust_alice', key })

test('after a change of customer the account is created again there, and a deletion reaches both', async () => {
  await withdraw()
  expect(await assignPayoutCustomer(operator(), stage.org.id, { partner: 'bridge', customerId: 'cust_alice_2' })).toBe(
    true,
  )
  master = await stage.aMaster()
  expect((await withdraw()).status).toBe(201)
  expect(atBridge().sort()).toEqual(['cust_alice', 'cust_alice_2'])
  await stage.world.database.db.run(
    sql`update withdrawals set status = 'completed', next_look_at = null where bank_account_id = ${account}`,
  )
  await remove()
  await turn()
  await expect
    .poll(async () => [atBridge(), await kept()])
    .toEqual([[], { hasDetails: false, removed: 2n, waiting: 0n }])
  await assignPayoutCustomer(operator(), stage.org.id, { partner: 'bridge', customerId: 'cust_alice' })
})

test('a bank account that no partner has is deleted without a request', async () => {
  // Payouts of the tests before are still read meanwhile.
  const ofAccounts = () => bridge.requested.filter(({ path }) => path.includes('/external_accounts')).length
  const requested = ofAccounts()
  expect((await remove()).status).toBe(204)
  await turn()
  expect([ofAccounts(), await kept()]).toEqual([requested, { hasDetails: false, removed: 0n, waiting: 0n }])
})
