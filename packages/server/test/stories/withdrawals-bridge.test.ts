import { type DevChain, startChain, tokenBalance } from '@purser/devnet'
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import { sql } from '../../src/platform/db/db.ts'
import { aBridge, type BridgeDouble, type BridgeTransfer, type Delivery } from '../bridge-double.ts'
import { aLiveStage, type LiveStage, nodeOf, type TestNode } from '../live-stage.ts'
import type { Managed } from '../partner-stage.ts'
import { type Answer, codeOf } from '../world.ts'

let base: DevChain
let node: TestNode
let bridge: BridgeDouble
let stage: LiveStage

beforeAll(async () => {
  base = await startChain({ network: 'base' })
  node = nodeOf(base)
  bridge = await aBridge()
  const { url: baseUrl, webhookPublicKey } = bridge
  stage = await aLiveStage([base], {
    bridge: { baseUrl, apiKey: 'sk-bridge', webhookPublicKey },
  })
})
afterAll(async () => {
  await stage?.stop()
  await bridge?.stop()
  await base?.stop()
})
beforeEach(() => {
  bridge.instead = () => undefined
})
afterEach(() => node.setAutomine(true))

const gbp = { accountName: 'Acme Ltd', currency: 'GBP', sortCode: '20-29-59', accountNumber: '63748472' }
const call = (method: string, path: string, body?: unknown, headers?: Record<string, string>) =>
  stage.world.call(stage.org.liveKey, method, path, body, headers)

async function withdraw(master: Managed, headers?: Record<string, string>): Promise<Answer> {
  const account = await call('POST', '/wallet-infra/bank-accounts', gbp)
  const moved = { token: 'USDC', chain: 'base', amount: '60', bankAccountId: account.body.id, reference: 'Invoice 7' }
  return call('POST', '/wallet-infra/withdraw', { fromWalletId: master.id, ...moved }, headers)
}

interface Begun {
  readonly master: Managed
  readonly made: Answer
  readonly payout: BridgeTransfer
}

/** A withdrawal of 60 of 100 USDC, and its transfer at Bridge. */
async function begun(): Promise<Begun> {
  const master = await stage.aMaster()
  const made = await withdraw(master)
  expect([made.status, made.body.status]).toEqual([201, 'pending_conversion'])
  const payout = bridge.transfers.find(({ key }) => key === made.body.id)
  if (payout === undefined) throw new Error('Bridge got no request')
  return { master, made, payout }
}

const read = async ({ made }: Begun) => (await call('GET', `/wallet-infra/withdrawals/${made.body.id}`)).body
const until = (one: Begun, status: string) =>
  expect.poll(async () => (await read(one)).status, { interval: 100 }).toBe(status)

async function deliver({ headers, body }: Delivery): Promise<number> {
  const url = `${stage.world.base}/partners/bridge/webhooks`
  return (await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body }))
    .status
}

const says = (payout: BridgeTransfer, state: string) => {
  payout.state = state
  return deliver(bridge.delivery(payout))
}

const Reported = z.object({ type: z.string(), payload: z.record(z.string(), z.unknown()) })
const reportOf = async ({ made }: Begun) => {
  const statement = sql`select type, payload from events where payload ->> 'withdrawalId' = ${String(made.body.id)} order by id`
  return (await stage.world.database.db.many(Reported, statement)).map(({ type }) => type)
}

const lastUpdateOf = async ({ made }: Begun) => {
  const statement = sql`
    select type, payload from events where payload ->> 'withdrawalId' = ${String(made.body.id)} and type = 'withdrawal.updated' order by id desc limit 1`
  return (await stage.world.database.db.one(Reported, statement)).payload
}

test('tokens go to the address that Bridge named, and each of Bridge’s states is mapped to ours as it is reported', async () => {
  const one = await begun()
  const { payout, master } = one
  await expect.poll(() => tokenBalance(base, 'USDC', payout.toAddress)).toBe(60_000_000n)
  expect(await tokenBalance(base, 'USDC', master.address)).toBe(40_000_000n)
  for (const state of ['funds_received', 'in_review']) expect(await says(payout, state)).toBe(204)
  expect((await read(one)).status).toBe('pending_conversion')
  expect(await says(payout, 'payment_submitted')).toBe(204)
  await until(one, 'conversion_complete')
  expect(await says(payout, 'payment_processed')).toBe(204)
  await until(one, 'completed')
  expect(await read(one)).toMatchObject({ feeAmount: '0.5', payoutAmount: '59.5', exchangeRate: '1.0', refund: null })
  const [requested] = bridge.requested.filter(({ path, method }) => method === 'POST' && path === '/transfers')
  expect(requested?.headers['idempotency-key']).toBe(one.made.body.id)
  expect(await reportOf(one)).toEqual(['withdrawal.updated', 'withdrawal.completed'])
})

test.each([
  [{ token: 'USDT', chain: 'ethereum' }, '/token'],
  [{ token: 'pathUSD', chain: 'tempo' }, '/chain'],
])('%o is refused before anything is stored, because Bridge never takes it', async (sent, path) => {
  const master = await stage.aMaster()
  const account = await call('POST', '/wallet-infra/bank-accounts', gbp)
  const body = { fromWalletId: master.id, amount: '60', bankAccountId: account.body.id, ...sent }
  const listed = async () => (await call('GET', '/wallet-infra/withdrawals')).list.map(({ id }) => id)
  const before = await listed()
  const refused = await call('POST', '/wallet-infra/withdraw', body)
  expect([refused.status, codeOf(refused)]).toEqual([422, 'token-not-supported'])
  const message = expect.stringContaining('takes USDC on base, ethereum, optimism, arbitrum, polygon')
  expect(refused.body.errors).toEqual([{ path, message }])
  expect(await listed()).toEqual(before)
})

test('deliveries out of order, repeated or false are only hints', async () => {
  const one = await begun()
  const { payout } = one
  const early = bridge.delivery({ ...payout, state: 'payment_processed' })
  expect(await Promise.all(Array.from({ length: 5 }, () => deliver(early)))).toEqual([204, 204, 204, 204, 204])
  await expect.poll(() => hintsOf(payout)).toBe(0)
  expect((await read(one)).status).toBe('pending_conversion')
  payout.state = 'payment_processed'
  await until(one, 'completed')
  expect(await says(payout, 'funds_received'), 'an answer from before').toBe(204)
  await expect.poll(() => hintsOf(payout)).toBe(0)
  expect((await read(one)).status).toBe('completed')
  expect(await reportOf(one)).toEqual(['withdrawal.completed'])
})

async function hintsOf({ id }: BridgeTransfer): Promise<number> {
  const statement = sql`select count(*)::int as count from payout_hints where payout_id = ${id}`
  return (await stage.world.database.db.one(z.object({ count: z.number() }), statement)).count
}

test('a forged delivery, and an old one that is sent again, are refused and change nothing', async () => {
  const one = await begun()
  const { payout } = one
  const done = { ...payout, state: 'payment_processed' }
  const old = bridge.delivery(done, { ageMs: 660_000 })
  const renewed = {
    ...old,
    headers: { 'x-webhook-signature': String(old.headers['x-webhook-signature']).replace(/t=\d+/, `t=${Date.now()}`) },
  }
  const forged = bridge.delivery(done, { signed: '{}' })
  expect(await Promise.all([old, renewed, forged, { ...forged, headers: {} }].map(deliver))).toEqual([
    400, 400, 400, 400,
  ])
  expect([await hintsOf(payout), (await read(one)).status]).toEqual([0, 'pending_conversion'])
})

test.each([
  ['undeliverable', 'expected'],
  ['missing_return_policy', 'held'],
  ['error', 'held'],
  ['refunded', 'done'],
  // It has the tokens, whatever the payout's state.
  ['canceled', 'held'],
])('a payout that is %s once the tokens are there has failed, its tokens %s, published once', async (state, refund) => {
  const one = await begun()
  await expect.poll(() => tokenBalance(base, 'USDC', one.payout.toAddress)).toBe(60_000_000n)
  await says(one.payout, state)
  await until(one, 'failed')
  expect(await read(one)).toMatchObject({ reason: 'payout-failed', refund, completedAt: null })
  expect(await reportOf(one)).toEqual(['withdrawal.failed'])
})

test('the refund of a failed withdrawal follows what the partner does with the tokens, and each change is published once', async () => {
  const one = await begun()
  await says(one.payout, 'missing_return_policy')
  await until(one, 'failed')
  expect((await read(one)).refund).toBe('held')
  await says(one.payout, 'undeliverable')
  await expect.poll(async () => (await read(one)).refund).toBe('expected')
  expect(await lastUpdateOf(one)).toMatchObject({ status: 'failed', refund: 'expected' })
  await says(one.payout, 'error')
  await expect.poll(async () => (await read(one)).refund).toBe('held')
  await says(one.payout, 'refunded')
  await expect.poll(async () => (await read(one)).refund).toBe('done')
  expect(await reportOf(one)).toEqual([
    'withdrawal.failed',
    'withdrawal.updated',
    'withdrawal.updated',
    'withdrawal.updated',
  ])
})

test('money that a bank returns fails a completed withdrawal, and the refund is followed to its end', async () => {
  const one = await begun()
  await says(one.payout, 'payment_processed')
  await until(one, 'completed')
  await says(one.payout, 'returned')
  await until(one, 'failed')
  expect(await read(one)).toMatchObject({ reason: 'payout-returned', refund: 'expected' })
  await says(one.payout, 'refunded')
  await expect.poll(async () => (await read(one)).refund).toBe('done')
  expect(await read(one)).toMatchObject({ status: 'failed', reason: 'payout-returned' })
  expect(await reportOf(one)).toEqual(['withdrawal.completed', 'withdrawal.failed', 'withdrawal.updated'])
  expect(await lastUpdateOf(one)).toMatchObject({ status: 'failed', refund: 'done', walletId: one.master.id })
})

test('a Bridge that reports paid before our tokens are in a block is accepted once they are, and a reorganization sends them again', async () => {
  await node.setAutomine(false)
  const mining = setInterval(() => void node.mine({ blocks: 1 }), 200)
  const master = await stage.aMaster().finally(() => clearInterval(mining))
  const before = await node.snapshot()
  const made = await withdraw(master)
  const payout = bridge.transfers.find(({ key }) => key === made.body.id)
  if (payout === undefined) throw new Error('Bridge got no request')
  const one = { master, made, payout }
  await says(payout, 'payment_processed')
  const reads = () => bridge.requested.filter(({ path }) => path === `/transfers/${payout.id}`).length
  await stage.untilBroadcast(master.address, 1)
  expect([reads(), (await read(one)).status]).toEqual([0, 'pending_conversion'])
  await node.mine({ blocks: 1 })
  await until(one, 'completed')
  await node.revert({ id: before })
  expect(await tokenBalance(base, 'USDC', payout.toAddress)).toBe(0n)
  const arrived = async () => {
    await node.mine({ blocks: 1 })
    return tokenBalance(base, 'USDC', payout.toAddress)
  }
  await expect.poll(arrived, { interval: 200 }).toBe(60_000_000n)
  await node.mine({ blocks: 6 })
  expect([await tokenBalance(base, 'USDC', master.address), await reportOf(one)]).toEqual([
    40_000_000n,
    ['withdrawal.completed'],
  ])
})

test('a request that fails while Bridge is down is repeated with the same key, and one payout is made', async () => {
  const master = await stage.aMaster()
  let away = 0
  bridge.instead = ({ method, path }) =>
    method === 'POST' && path === '/transfers' && ++away < 2 ? { status: 502, text: '<html>' } : undefined
  const made = await withdraw(master, { 'idempotency-key': 'salary' })
  expect([made.status, made.body.status, made.body.txHash]).toEqual([201, 'pending_conversion', null])
  await stage.hurry(made)
  await expect.poll(() => tokenBalance(base, 'USDC', master.address)).toBe(40_000_000n)
  expect(bridge.transfers.filter(({ key }) => key === made.body.id)).toHaveLength(1)
})

test.each([
  ['another amount', { amount: '59.99' }],
  ['another token', { currency: 'usdt' }],
  ['another chain', { payment_rail: 'polygon' }],
])('a deposit of %s is not made, and nothing is signed', async (_, lie) => {
  const master = await stage.aMaster()
  const agreed = {
    payment_rail: 'base',
    currency: 'usdc',
    amount: '60.0',
    to_address: privateKeyToAddress(generatePrivateKey()),
  }
  bridge.instead = ({ method, path }) =>
    method === 'POST' && path === '/transfers'
      ? {
          status: 201,
          json: { id: 'transfer_lie', state: 'awaiting_funds', source_deposit_instructions: { ...agreed, ...lie } },
        }
      : undefined
  const made = await withdraw(master)
  expect([made.status, made.body.txHash, codeOf(made)]).toEqual([201, null, ''])
  expect([await stage.countOf(master.address, 'base'), await tokenBalance(base, 'USDC', master.address)]).toEqual([
    0,
    100_000_000n,
  ])
})

test('a payout that Bridge answers for two withdrawals pays for one: the other fails with its tokens in place', async () => {
  const one = await begun()
  await expect.poll(() => tokenBalance(base, 'USDC', one.payout.toAddress)).toBe(60_000_000n)
  const { id, toAddress } = one.payout
  const place = { payment_rail: 'base', currency: 'usdc', amount: '60.0', to_address: toAddress }
  const again = { id, state: 'awaiting_funds', source_deposit_instructions: place }
  bridge.instead = ({ method, path }) =>
    method === 'POST' && path === '/transfers' ? { status: 201, json: again } : undefined
  const other = await stage.aMaster()
  const made = await withdraw(other)
  expect([made.status, made.body.reason]).toEqual([422, 'partner-refused'])
  await says(one.payout, 'payment_processed')
  await until(one, 'completed')
  const { list } = await call('GET', '/wallet-infra/withdrawals')
  const statuses = list.filter(({ fromWalletId }) => fromWalletId === other.id).map(({ status }) => status)
  expect(statuses).toEqual(['failed'])
  expect(await tokenBalance(base, 'USDC', toAddress)).toBe(60_000_000n)
  expect(await tokenBalance(base, 'USDC', other.address)).toBe(100_000_000n)
})

test.each([
  ['customer', { on_behalf_of: 'cust_bob' }],
  ['bank account', { destination: { payment_rail: 'faster_payments', currency: 'gbp', external_account_id: 'other' } }],
  ['withdrawal', { client_reference_id: 'wdr_01h455vb4pex5vsknk084sn02r' }],
])('a new payout for another %s gets no tokens, though its amount and place fit', async (_, lie) => {
  const master = await stage.aMaster()
  const toAddress = privateKeyToAddress(generatePrivateKey())
  const place = { payment_rail: 'base', currency: 'usdc', amount: '60.0', to_address: toAddress }
  const of = { id: `transfer_of_${Object.keys(lie)[0]}`, state: 'awaiting_funds', source_deposit_instructions: place }
  bridge.instead = ({ method, path }) =>
    method === 'POST' && path === '/transfers' ? { status: 201, json: { ...of, ...lie } } : undefined
  const made = await withdraw(master)
  expect([made.status, made.body.txHash]).toEqual([201, null])
  expect(await stage.countOf(master.address, 'base')).toBe(0)
})

test('the state of another payout does not complete a withdrawal, and its own state does', async () => {
  const [one, other] = [await begun(), await begun()]
  await expect.poll(() => tokenBalance(base, 'USDC', one.payout.toAddress)).toBe(60_000_000n)
  await says(other.payout, 'payment_processed')
  await until(other, 'completed')
  const paid = { id: other.payout.id, state: 'payment_processed' }
  let reads = 0
  bridge.instead = ({ method, path }) => {
    if (method !== 'GET' || path !== `/transfers/${one.payout.id}`) return undefined
    reads += 1
    return { json: paid }
  }
  const polled = async () => {
    await stage.hurry(one.made)
    return reads
  }
  await expect.poll(polled, { interval: 200 }).toBeGreaterThan(1)
  expect([(await read(one)).status, await reportOf(one)]).toEqual(['pending_conversion', []])
  bridge.instead = () => undefined
  one.payout.state = 'payment_processed'
  await stage.hurry(one.made)
  await until(one, 'completed')
})

test('tokens for a payout go to no managed wallet, of whatever organisation', async () => {
  const [master, stranger] = [await stage.aMaster(), await stage.world.organisation()]
  const { body } = await stage.world.call(stranger.liveKey, 'POST', '/wallet-infra/master-wallets', {
    chain: 'base',
    supportedTokens: ['USDC'],
  })
  const place = { payment_rail: 'base', currency: 'usdc', amount: '60.0', to_address: body.address }
  const lie = { id: 'transfer_to_wallet', state: 'awaiting_funds', source_deposit_instructions: place }
  bridge.instead = ({ method, path }) =>
    method === 'POST' && path === '/transfers' ? { status: 201, json: lie } : undefined
  const made = await withdraw(master)
  expect([made.status, made.body.reason]).toEqual([422, 'partner-refused'])
  expect(await stage.countOf(master.address, 'base')).toBe(0)
})

test('an account that Bridge answers for two bank accounts is paid for one: a withdrawal to the other is refused', async () => {
  const master = await stage.aMaster(200_000_000n)
  const first = await withdraw(master)
  expect(first.status).toBe(201)
  const known = bridge.accounts.find(({ key }) => key === first.body.bankAccountId)
  bridge.instead = ({ method, path }) =>
    method === 'POST' && path.endsWith('/external_accounts') ? { status: 201, json: { id: known?.id } } : undefined
  const second = await withdraw(master)
  expect([second.status, codeOf(second)]).toEqual([422, 'bank-account-refused'])
  expect(bridge.transfers.filter(({ key }) => key === first.body.id)).toHaveLength(1)
  bridge.instead = () => undefined
  expect((await withdraw(master)).status).toBe(201)
})

test('neither Bridge’s key nor the bank account is in any log line', () => {
  const text = stage.lines.join('')
  expect(text).toMatch(/withdrawal/)
  expect(text).not.toMatch(/sk-bridge|63748472|202959|20-29-59/)
})

test.each([
  ['customer', { on_behalf_of: 'cust_mallory' }],
  ['withdrawal', { client_reference_id: 'wdr_01m00000000000000000000000' }],
  ['bank account', { destination: { external_account_id: 'external_account_of_mallory' } }],
  ['currency', { destination: { currency: 'usd' } }],
])(
  'a payout that Bridge later shows for another %s completes nothing, and its own state does',
  async (_what, changes) => {
    const one = await begun()
    const { payout } = one
    const readings = () => bridge.requested.filter(({ path }) => path === `/transfers/${payout.id}`).length
    payout.changes = changes
    const before = readings()
    await says(payout, 'payment_processed')
    for (let read = 1; read < 4; read++) {
      await expect.poll(readings, { timeout: 20_000 }).toBeGreaterThanOrEqual(before + read)
      await stage.hurry(one.made)
    }
    await expect.poll(readings, { timeout: 20_000 }).toBeGreaterThan(before + 3)
    expect([(await read(one)).status, await reportOf(one)]).toEqual(['pending_conversion', []])
    payout.changes = {}
    await stage.hurry(one.made)
    await until(one, 'completed')
  },
)
