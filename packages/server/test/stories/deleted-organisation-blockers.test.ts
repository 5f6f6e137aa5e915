import { type DevChain, startChain } from '@purser/devnet'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { runAdmin } from '../../src/admin/run.ts'
import { type Sql, sql } from '../../src/platform/db/db.ts'
import { aBrowser, ownerOf } from '../people.ts'
import { bankAccount } from '../resources.ts'
import { aWorld, type Org, type World } from '../world.ts'

// Each kind of money and obligation that keeps an organisation from being deleted, and what is like it and does not.

let chain: DevChain
let world: World

/** No work runs, so that what a test writes stays as it is. */
beforeAll(async () => {
  chain = await startChain({ network: 'base' })
  world = await aWorld({ chains: [chain], config: { role: 'api' } })
})
afterAll(async () => {
  await world?.stop()
  await chain?.stop()
})

const Blockers = z.array(z.object({ kind: z.string(), ids: z.array(z.string()) }))
const address = `0x${'b'.repeat(40)}`

/** Deletes the organisation as its owner; returns the kinds and ids of what prevents it. */
async function blockersOf({ id }: Org): Promise<string[]> {
  const owner = await aBrowser(world, { email: await ownerOf(world, id), organisationId: id })
  const { status, body } = await owner.call('DELETE', `/organisations/${id}`)
  if (status === 204) return []
  expect(status).toBe(409)
  return Blockers.parse(body.blockers).flatMap(({ kind, ids }) => ids.map((one) => `${kind} ${one.replace(id, '')}`))
}

const run = (statement: Sql) => world.database.db.run(statement)
const named = (prefix: string, { id }: Org) => `${prefix}_${id}`

async function aTransfer(org: Org, { purpose = 'transfer', isEnded = false } = {}): Promise<string> {
  const id = named('wtx', org)
  await run(sql`
    insert into transfers (id, organisation_id, environment, wallet_id, from_address, to_address, from_chain, from_network, to_chain, to_network,
      from_token, to_token, decimals, raw_amount, route, route_reason, status, created_at, ended_at, purpose)
    values (${id}, ${org.id}, 'test', 'mwt', ${address}, ${address}, 'base', 'base-sepolia', 'base', 'base-sepolia', 'USDC', 'USDC', 6, 1, 'direct', '',
      'pending', now(), case when ${isEnded} then now() end, ${purpose})`)
  return id
}

async function aRefund(org: Org, status: string): Promise<void> {
  const transferId = await aTransfer(org, { isEnded: status !== 'pending' })
  await run(sql`
    insert into payment_refunds (id, organisation_id, environment, payment_id, transfer_id, raw_amount, status, created_at)
    values (${named('rfd', org)}, ${org.id}, 'test', 'pay', ${transferId}, 1, ${status}, now())`)
}

async function anApproval(org: Org, status: string): Promise<void> {
  const subject = await aTransfer(org, { isEnded: status !== 'waiting' })
  const path = '/wallet-infra/master-wallets'
  const made = await world.call(org.testKey, 'POST', path, { chain: 'base-sepolia', supportedTokens: ['USDC'] })
  const wallet = made.body.id
  await run(sql`
    insert into movement_approvals (id, organisation_id, environment, master_wallet_id, wallet_id, kind, operation, subject_id, chain, token, decimals,
      raw_amount, recipient, to_chain, to_token, approval_above, api_key_id, account_id, created_at, expires_at, status, decided_at)
    select ${named('apr', org)}, ${org.id}, 'test', ${wallet}, ${wallet}, 'transfer', 'transfer', ${subject}, 'base', 'USDC', 6, 1, ${address}, 'base', 'USDC', '0',
      id, created_by, now(), now() + interval '1 day', ${status}, case when ${status !== 'waiting'} then now() end
    from api_keys where organisation_id = ${org.id} and environment = 'test'`)
}

interface Withdrawn {
  readonly status: string
  readonly refund?: string
  readonly isFollowed?: boolean
}

async function aWithdrawal(org: Org, environment: 'test' | 'live', withdrawn: Withdrawn): Promise<void> {
  const bank = (await world.call(org.testKey, 'POST', '/wallet-infra/bank-accounts', bankAccount)).body.id
  const { status, refund = null, isFollowed = false } = withdrawn
  await run(sql`
    insert into withdrawals (id, organisation_id, environment, wallet_id, from_address, chain, network, token, decimals, raw_amount, bank_account_id,
      currency, status, refund, partner, partner_account_id, created_at, next_look_at)
    values (${named('wdr', org)}, ${org.id}, ${environment}, 'mwt', ${address}, 'base', 'base', 'USDC', 6, 1, ${bank}, 'GBP', ${status}, ${refund}, 'sandbox',
      'sandbox_1', now(), case when ${isFollowed} then now() + interval '6 hours' end)`)
}

async function aWallet({ id, liveKey }: Org, state: Sql): Promise<{ id: string; child: string }> {
  const path = '/wallet-infra/master-wallets'
  const made = await world.call(liveKey, 'POST', path, { chain: 'base', supportedTokens: ['USDC'] })
  const walletId = String(made.body.id)
  const child = await world.call(liveKey, 'POST', `${path}/${walletId}/child-addresses`, {})
  await run(sql`update master_wallets set ${state} where id = ${walletId} and organisation_id = ${id}`)
  return { id: walletId, child: String(child.body.id) }
}

interface Deposited {
  readonly raw: number
  readonly amlStatus?: string
  readonly frozen?: number
  readonly isEarlier?: boolean
  readonly network?: 'base' | 'ethereum'
}

/** A wallet that was retired an hour ago, with deposits at its child address. */
async function aRetiredWallet(org: Org, ...deposits: readonly Deposited[]): Promise<void> {
  const { child } = await aWallet(org, sql`retired_at = now() - interval '1 hour'`)
  for (const [index, deposit] of deposits.entries()) {
    const { raw, amlStatus = 'clear', frozen = 0, isEarlier = false, network = 'base' } = deposit
    await run(sql`
      insert into wallet_transactions (id, organisation_id, environment, wallet_id, network, chain, tx_hash, log_index, direction, kind, status, token,
        token_symbol, decimals, raw_amount, frozen_raw_amount, from_address, to_address, block_number, block_hash, block_time, aml_status, created_at)
      values (${named(`dep${index}`, org)}, ${org.id}, 'live', ${child}, ${network}, ${network}, ${`0x${org.id}`}, ${index}, 'in', 'transfer', 'confirmed', '0x01',
        'USDC', 6, ${raw}, ${frozen}, ${address}, ${address}, 1, '0x04', now(), ${amlStatus}, now() - case when ${isEarlier} then interval '2 hours' else '0' end)`)
  }
}

async function aLegacyWallet(org: Org, raw: number, frozen = 0): Promise<void> {
  const { id } = await aWallet(org, sql`legacy_coin = 'USDC'`)
  await run(sql`
    insert into wallet_rollups (wallet_id, network, token, span, organisation_id, environment, raw_amount)
    values (${id}, 'base', '0x01', 0, ${org.id}, 'live', 5), (${id}, 'base', '0x01', 1, ${org.id}, 'live', ${raw - 5})`)
  await areFrozen(org, id, frozen)
}

async function areFrozen(org: Org, walletId: string, raw: number): Promise<void> {
  await run(sql`
    insert into tainted_places (organisation_id, environment, wallet_id, network, token, raw_frozen)
    values (${org.id}, 'live', ${walletId}, 'base', '0x01', ${raw})`)
}

/** A wallet that was retired with two frozen tokens at its child address, of which this much is frozen still. */
async function aWalletWithFrozen(org: Org, frozen: number): Promise<void> {
  await aRetiredWallet(org, { raw: 2 * whole, isEarlier: true })
  await run(sql`update master_wallets set retired_with_frozen = true where organisation_id = ${org.id}`)
  const { id } = await world.database.db.one(
    z.object({ id: z.string() }),
    sql`select id from child_addresses where organisation_id = ${org.id}`,
  )
  await areFrozen(org, id, frozen)
}

/** A paid vault of the live environment that is sealed, and its token. */
async function aSealedVault(
  org: Org,
  kind: 'token' | 'ticket',
  change?: (path: string) => Promise<unknown>,
): Promise<void> {
  const key = await world.call(org.liveKey, 'POST', '/organisations/current/api-keys', {
    name: 'x',
    environment: 'live',
  })
  const { id } = (await world.call(org.liveKey, 'POST', '/vaults', {})).body
  const path = `/vaults/${id}`
  await world.call(org.liveKey, 'POST', `${path}/seal`, { summary: 'Done' })
  expect((await world.call(String(key.body.key), 'POST', `${path}/tokens`, { kind })).status).toBe(201)
  await run(sql`update vaults set payment_id = 'pay_of_the_vault' where id = ${id}`)
  await change?.(`/organisations/current/api-keys/${key.body.id}`)
}

const whole = 1_000_000
const expired = () => run(sql`update vault_tokens set expires_at = now() - interval '1 second' where kind = 'token'`)

const cases: readonly [name: string, make: (org: Org) => Promise<unknown>, kind?: string][] = [
  ['a transfer that is under way', (org) => aTransfer(org), 'transfers'],
  ['a transfer that ended', (org) => aTransfer(org, { isEnded: true })],
  ['the transfer of a withdrawal, which counts itself', (org) => aTransfer(org, { purpose: 'withdrawal' })],
  ['a refund that is under way, once', (org) => aRefund(org, 'pending'), 'refunds'],
  ['a refund that ended', (org) => aRefund(org, 'completed')],
  ['a transfer that waits for an approval, once', (org) => anApproval(org, 'waiting'), 'approvals'],
  ['an approval that was refused', (org) => anApproval(org, 'refused')],
  [
    'a test withdrawal that is under way',
    (org) => aWithdrawal(org, 'test', { status: 'pending_conversion' }),
    'withdrawals',
  ],
  [
    'a live withdrawal whose bank may return it',
    (org) => aWithdrawal(org, 'live', { status: 'completed', isFollowed: true }),
    'withdrawals',
  ],
  ['a live withdrawal that no bank returns any more', (org) => aWithdrawal(org, 'live', { status: 'completed' })],
  ['a test withdrawal that is completed', (org) => aWithdrawal(org, 'test', { status: 'completed', isFollowed: true })],
  [
    'a live withdrawal whose money is to come back',
    (org) => aWithdrawal(org, 'live', { status: 'failed', refund: 'expected' }),
    'withdrawals',
  ],
  [
    'a live withdrawal whose money a partner holds',
    (org) => aWithdrawal(org, 'live', { status: 'failed', refund: 'held' }),
    'withdrawals',
  ],
  ['a live withdrawal whose money is back', (org) => aWithdrawal(org, 'live', { status: 'failed', refund: 'done' })],
  [
    'a test withdrawal whose money a partner holds',
    (org) => aWithdrawal(org, 'test', { status: 'failed', refund: 'held' }),
  ],
  ['a live wallet that is not retired', (org) => aWallet(org, sql`retired_at = null`), 'wallets'],
  [
    'a retired wallet that received a whole token since, in parts',
    (org) => aRetiredWallet(org, { raw: 400_000 }, { raw: 600_000 }),
    'wallets',
  ],
  [
    'a retired wallet that received less than a token since',
    (org) => aRetiredWallet(org, { raw: whole, isEarlier: true }, { raw: whole - 1 }),
  ],
  [
    'a retired wallet with a token on another network from before',
    (org) => aRetiredWallet(org, { raw: whole, isEarlier: true, network: 'ethereum' }),
    'wallets',
  ],
  [
    'a retired wallet with less than a token on another network from before',
    (org) => aRetiredWallet(org, { raw: whole - 1, isEarlier: true, network: 'ethereum' }),
  ],
  [
    'a retired wallet that received flagged money since',
    (org) => aRetiredWallet(org, { raw: whole, amlStatus: 'flagged' }),
  ],
  ['a retired wallet that received frozen money since', (org) => aRetiredWallet(org, { raw: whole, frozen: whole })],
  ['a legacy wallet with a balance', (org) => aLegacyWallet(org, 1), 'wallets'],
  ['a legacy wallet without a balance', (org) => aLegacyWallet(org, 0)],
  ['a legacy wallet of which all is frozen', (org) => aLegacyWallet(org, 7, 7)],
  ['a legacy wallet of which some is not frozen', (org) => aLegacyWallet(org, 7, 6), 'wallets'],
  ['a wallet that was retired with frozen money', (org) => aWalletWithFrozen(org, 2 * whole)],
  [
    'a wallet that was retired with frozen money, of which less than a token is released',
    (org) => aWalletWithFrozen(org, whole + 1),
  ],
  [
    'a wallet that was retired with frozen money, of which a token is released',
    (org) => aWalletWithFrozen(org, whole),
    'wallets',
  ],
  ['a sealed vault that its buyer reads with a token', (org) => aSealedVault(org, 'token'), 'vaults'],
  ['a sealed vault whose token expired', (org) => aSealedVault(org, 'token', expired)],
  ['a sealed vault with a ticket', (org) => aSealedVault(org, 'ticket')],
  [
    'a sealed vault whose token ended with its key',
    (org) => aSealedVault(org, 'token', (path) => world.call(org.liveKey, 'DELETE', path)),
  ],
]

test('the operator sees when a deleted organisation received money, and only then', async () => {
  const org = await world.organisation()
  await aRetiredWallet(org, { raw: whole, isEarlier: true })
  const listed = async () =>
    (await runAdmin(['admin', 'list-organisations', '--find', org.id], { DATABASE_URL: world.database.url })).stdout
  expect(await listed()).not.toMatch(/deleted|received/)
  expect(await blockersOf(org)).toEqual([])
  expect(await listed()).toMatch(/ {2}deleted 20\d\d-\d\d-\d\d\n$/)
  await run(sql`update wallet_transactions set created_at = now() where organisation_id = ${org.id}`)
  expect(await listed()).toMatch(/ {2}deleted 20\d\d-\d\d-\d\d {2}received money 20\d\d-\d\d-\d\d\n$/)
})

test.each(cases)('%s', async (_, make, kind) => {
  const org = await world.organisation()
  await make(org)
  const found = await blockersOf(org)
  expect(found.map((blocker) => blocker.split(' ')[0])).toEqual(kind === undefined ? [] : [kind])
})
