import {
  type DevChain,
  type FaultProxy,
  fundNative,
  fundToken,
  startChain,
  startFaultProxy,
  tokenBalance,
} from '@purser/devnet'
import type { Address } from '@purser/protocol'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { follow } from '../../src/features/withdrawals/withdraw/follow.ts'
import { NewWithdrawal } from '../../src/features/withdrawals/withdraw/schema.ts'
import { createWithdrawal } from '../../src/features/withdrawals/withdraw/withdraw.ts'
import type { Ctx, Deps } from '../../src/modules.ts'
import { sql } from '../../src/platform/db/db.ts'
import { id, newId } from '../../src/platform/ids.ts'
import { forTenant, systemCtx } from '../../src/platform/work/runner.ts'
import { auditedActions } from '../audited.ts'
import { aPartner, Death, mortal } from '../off-ramp-partner.ts'
import { type Answer, aWorld, codeOf, countByStatus, type Org, request, unreachableMain, type World } from '../world.ts'

let base: DevChain
let node: FaultProxy
let world: World
/** Another deployment of the same kind without running jobs: the test does its work. */
let idle: World
let org: Org

beforeAll(async () => {
  base = await startChain({ network: 'base-sepolia' })
  node = await startFaultProxy(base.rpcUrl)
  world = await aWorld({ chains: [base], rpcUrls: { ...unreachableMain, 'base-sepolia': [node.url] } })
  idle = await aWorld({ chains: [base], config: { role: 'api' } })
  org = await world.organisation()
})
afterAll(async () => {
  await world?.stop()
  await idle?.stop()
  await node?.stop()
  await base?.stop()
})

const path = '/wallet-infra/withdraw'
const list = '/wallet-infra/withdrawals'
const gbp = { accountName: 'Acme Ltd', currency: 'GBP', sortCode: '20-29-59', accountNumber: '63748472' }

interface Stage {
  readonly key: string
  readonly walletId: string
  readonly address: Address
  readonly bankAccountId: string
}

async function aStage(rawUsdc = 200_000_000n, { at = world, owner = org } = {}): Promise<Stage> {
  const key = owner.testKey
  const masters = '/wallet-infra/master-wallets'
  const { body } = await at.call(key, 'POST', masters, { chain: 'base', supportedTokens: ['USDC'] })
  const address = body.address as Address
  await fundNative(base, address, 10n ** 18n)
  if (rawUsdc > 0n) await fundToken(base, 'USDC', address, rawUsdc)
  const account = await at.call(key, 'POST', '/wallet-infra/bank-accounts', gbp)
  return { key, walletId: String(body.id), address, bankAccountId: String(account.body.id) }
}

function bodyOf({ walletId, bankAccountId }: Stage, changes: Record<string, unknown> = {}) {
  return { fromWalletId: walletId, token: 'USDC', chain: 'base', amount: '100', bankAccountId, ...changes }
}

const withdraw = (stage: Stage, changes: Record<string, unknown> = {}, headers: Record<string, string> = {}) =>
  world.call(stage.key, 'POST', path, bodyOf(stage, changes), headers)

async function read(stage: Stage, made: Answer): Promise<Record<string, unknown>> {
  return (await world.call(stage.key, 'GET', `${list}/${made.body.id}`)).body
}

/** The ends that events reported; the states seen before them depend on when the partner was polled. */
async function eventsOf(withdrawalId: unknown, at = world): Promise<Record<string, unknown>[]> {
  return at.database.db.many(
    z.object({ type: z.string(), payload: z.record(z.string(), z.unknown()) }),
    sql`
    select type, payload from events where payload ->> 'withdrawalId' = ${String(withdrawalId)} and type <> 'withdrawal.updated' order by id`,
  )
}

const ofType = (type: string) => expect.objectContaining({ type })

test('money goes to the partner, the partner pays the bank, and the end is published once', async () => {
  const stage = await aStage()
  const made = await withdraw(stage, { reference: 'Invoice 7', fromWalletType: 'master' })
  expect(made.status).toBe(201)
  expect(made.body).toEqual({
    id: expect.stringMatching(/^wdr_/),
    fromWalletId: stage.walletId,
    status: 'pending_conversion',
    txHash: made.body.txHash,
    amount: '100',
    token: 'USDC',
    chain: 'base',
    bankAccountId: stage.bankAccountId,
    currency: 'GBP',
    reference: 'Invoice 7',
    metadata: {},
    approval: null,
    feeAmount: null,
    exchangeRate: null,
    payoutAmount: null,
    estimatedDays: 1,
    reason: null,
    refund: null,
    createdAt: expect.any(String),
    completedAt: null,
    failedAt: null,
  })
  const seen = new Set<unknown>()
  const status = async () => {
    const now = (await read(stage, made)).status
    seen.add(now)
    return now
  }
  await expect.poll(status, { timeout: 60_000, interval: 100 }).toBe('completed')
  expect(
    [...seen].every((state) => ['pending_conversion', 'conversion_complete', 'completed'].includes(String(state))),
  ).toBe(true)
  const done = await read(stage, made)
  expect(done).toMatchObject({ feeAmount: '0', exchangeRate: '1', payoutAmount: '100', reason: null, failedAt: null })
  expect(done.txHash).toMatch(/^0x[0-9a-f]{64}$/)
  expect(await tokenBalance(base, 'USDC', stage.address)).toBe(100_000_000n)
  const payload = {
    withdrawalId: made.body.id,
    walletId: stage.walletId,
    amount: '100',
    token: 'USDC',
    reference: 'Invoice 7',
    completedAt: done.completedAt,
  }
  expect(await eventsOf(made.body.id)).toEqual([{ type: 'withdrawal.completed', payload }])
  expect(await auditedActions(world.database.db, made.body.id)).toEqual([
    'withdrawals.create api-key',
    'withdrawals.completed system',
  ])
  expect((await world.call(stage.key, 'GET', list)).list).toContainEqual(done)
  const transfers = await world.call(stage.key, 'GET', `/wallet-infra/transfers?fromWalletId=${stage.walletId}`)
  expect(transfers.list, 'its transaction is not listed as a transfer of the caller').toEqual([])
})

test('a payout that the bank refuses fails once, and the event says what happens to the tokens', async () => {
  const stage = await aStage()
  const made = await withdraw(stage, { amount: '60.01' })
  await expect.poll(async () => (await read(stage, made)).status, { timeout: 60_000 }).toBe('failed')
  expect(await read(stage, made)).toMatchObject({ reason: 'payout-failed', refund: 'held', completedAt: null })
  const [event, ...more] = await eventsOf(made.body.id)
  expect([event, more]).toEqual([
    { type: 'withdrawal.failed', payload: expect.objectContaining({ reason: 'payout-failed' }) },
    [],
  ])
})

test('money that a bank returns makes a completed withdrawal a failed one, each published once', async () => {
  const stage = await aStage()
  const made = await withdraw(stage, { amount: '60.02' })
  await expect.poll(async () => (await read(stage, made)).status, { timeout: 90_000 }).toBe('failed')
  expect(await read(stage, made)).toMatchObject({ reason: 'payout-returned', completedAt: expect.any(String) })
  expect(await eventsOf(made.body.id)).toEqual([ofType('withdrawal.completed'), ofType('withdrawal.failed')])
  expect((await auditedActions(world.database.db, made.body.id)).slice(1)).toEqual([
    'withdrawals.completed system',
    'withdrawals.failed system',
  ])
})

test('what the partner refuses is refused before anything is signed, and published', async () => {
  const stage = await aStage()
  const refused = await withdraw(stage, { amount: '60.04' }, { 'idempotency-key': 'refused' })
  expect([refused.status, codeOf(refused), refused.body.reason]).toEqual([422, 'withdrawal-refused', 'partner-refused'])
  const again = await withdraw(stage, { amount: '60.04' }, { 'idempotency-key': 'refused' })
  expect(again.body.withdrawalId).toBe(refused.body.withdrawalId)
  expect(await eventsOf(refused.body.withdrawalId)).toEqual([ofType('withdrawal.failed')])
  const audited = await auditedActions(world.database.db, refused.body.withdrawalId)
  expect(audited).toEqual(['withdrawals.create api-key', 'withdrawals.failed api-key'])
  expect(await tokenBalance(base, 'USDC', stage.address)).toBe(200_000_000n)
})

test.each([
  [{ amount: '49.999999' }, 'below-minimum'],
  [{ amount: '50.0000001' }, 'validation-error'],
  [{ amount: 'all' }, 'validation-error'],
  [{ token: 'ETH' }, 'token-not-supported'],
  [{ fromWalletType: 'child' }, 'validation-error'],
  [{ bankAccountId: 'bac_01h455vb4pex5vsknk084sn02q' }, 'bank-account-not-found'],
  [{ fromWalletId: 'cad_01h455vb4pex5vsknk084sn02q' }, 'wallet-not-found'],
])('%j is refused as %s, and nothing is stored', async (changes, code) => {
  const stage = await aStage(0n, { owner: await world.organisation() })
  const refused = await withdraw(stage, changes)
  expect([refused.status, codeOf(refused)]).toEqual([422, code])
  expect((await world.call(stage.key, 'GET', list)).list).toEqual([])
})

test('a withdrawal that is too small says what the least amount is', async () => {
  const stage = await aStage(0n, { owner: await world.organisation() })
  const refused = await withdraw(stage, { amount: '2.50' })
  expect([refused.body.minimum, refused.body.detail]).toEqual(['50', expect.stringContaining('at least 50 US dollars')])
})

test('a spend policy names the bank accounts, caps payouts to them, and does not count refused ones', async () => {
  const stage = await aStage()
  const policy = {
    operations: { withdraw: { recipients: [stage.bankAccountId] } },
    tokens: { USDC: { perDay: '100' } },
  }
  const put = await world.call(stage.key, 'PUT', `/wallet-infra/master-wallets/${stage.walletId}/policy`, policy)
  expect(put.status).toBe(200)
  const other = await world.call(stage.key, 'POST', '/wallet-infra/bank-accounts', gbp)
  const elsewhere = await withdraw(stage, { bankAccountId: other.body.id })
  expect([elsewhere.status, codeOf(elsewhere)]).toEqual([403, 'policy-denied'])
  expect(codeOf(await withdraw(stage, { amount: '60.04' })), 'refused by the partner').toBe('withdrawal-refused')
  expect((await withdraw(stage, { amount: '50' })).status).toBe(201)
  const tooMuch = await withdraw(stage, { amount: '50.000001' })
  expect([tooMuch.status, tooMuch.body.rule]).toEqual([403, 'perDay'])
})

test('one unit too little is refused with the amounts, and exactly fifty dollars are enough', async () => {
  const short = await withdraw(await aStage(49_999_999n), { amount: '50' })
  expect([short.status, codeOf(short)]).toEqual([422, 'insufficient-balance'])
  expect(short.body.balances).toEqual([{ token: 'USDC', required: '50', available: '49.999999' }])
  const exact = await aStage(50_000_000n)
  expect((await withdraw(exact, { amount: '50' })).status).toBe(201)
  await expect.poll(() => tokenBalance(base, 'USDC', exact.address)).toBe(0n)
})

test('a bank account of another organisation, of another environment, or a deleted one is not found', async () => {
  const stage = await aStage()
  const other = await world.organisation()
  const theirs = await world.call(other.testKey, 'POST', '/wallet-infra/bank-accounts', gbp)
  const live = await world.call(org.liveKey, 'POST', '/wallet-infra/bank-accounts', gbp)
  const gone = await world.call(stage.key, 'POST', '/wallet-infra/bank-accounts', gbp)
  await world.call(stage.key, 'DELETE', `/wallet-infra/bank-accounts/${gone.body.id}`)
  for (const { body } of [theirs, live, gone]) {
    const refused = await withdraw(stage, { bankAccountId: body.id })
    expect([refused.status, codeOf(refused)]).toEqual([422, 'bank-account-not-found'])
  }
})

test('without a payout partner nothing is stored', async () => {
  const stage = { ...(await aStage(0n, { owner: { ...org, testKey: org.liveKey } })), key: org.liveKey }
  const refused = await withdraw(stage)
  expect([refused.status, codeOf(refused)]).toEqual([503, 'partner-unavailable'])
  expect((await world.call(stage.key, 'GET', list)).list).toEqual([])
}, 30_000)

test('fifty repeats of one Idempotency-Key at two processes are one withdrawal', async () => {
  const stage = await aStage()
  const second = await world.another()
  const headers = { 'idempotency-key': 'pay-out' }
  const answers = await Promise.all(
    Array.from({ length: 50 }, (_, n) =>
      request(n % 2 === 0 ? world.base : second.base, {
        key: stage.key,
        method: 'POST',
        path,
        body: bodyOf(stage),
        headers,
      }),
    ),
  )
  const made = answers.filter(({ status }) => status === 201)
  expect(Object.keys(countByStatus(answers)).every((status) => ['201', '409'].includes(status))).toBe(true)
  expect(new Set(made.map(({ body }) => body.id)).size).toBe(1)
  await expect.poll(() => tokenBalance(base, 'USDC', stage.address)).toBe(100_000_000n)
})

test('of concurrent withdrawals all that the wallet can pay are accepted: a superseded plan is not a lack of money', async () => {
  const stage = await aStage(400_000_000n)
  const answers = await Promise.all(Array.from({ length: 4 }, () => withdraw(stage)))
  expect(countByStatus(answers)).toEqual({ 201: 4 })
  await expect.poll(() => tokenBalance(base, 'USDC', stage.address)).toBe(0n)
})

test('of five at once out of a wallet that can pay two, two succeed, and the others fail with nothing moved', async () => {
  const stage = await aStage(200_000_000n)
  const answers = await Promise.all(Array.from({ length: 5 }, () => withdraw(stage)))
  expect(countByStatus(answers)).toEqual({ 201: 2, 422: 3 })
  await expect.poll(() => tokenBalance(base, 'USDC', stage.address)).toBe(0n)
})

const Found = z.object({
  id: id('wdr'),
  payoutId: z.string().nullable(),
  transferId: z.string().nullable(),
  status: z.string(),
})

async function rowsOf(stage: Stage) {
  return idle.database.db.many(
    Found,
    sql`select id, payout_id, transfer_id, status from withdrawals where wallet_id = ${stage.walletId}`,
  )
}

async function countTransfers(stage: Stage): Promise<number> {
  const statement = sql`select count(*)::int as count from transfers where wallet_id = ${stage.walletId}`
  return (await idle.database.db.one(z.object({ count: z.number() }), statement)).count
}

async function anIdleStage(): Promise<{ readonly stage: Stage; readonly owner: Org }> {
  const owner = await idle.organisation()
  return { stage: await aStage(200_000_000n, { at: idle, owner }), owner }
}

function ctxOf(deps: Deps, owner: Org): Ctx {
  return {
    ...forTenant(systemCtx(deps), { organisationId: owner.id, environment: 'test' }),
    requestId: newId('req', deps),
  }
}

test('a process that dies at any step of a withdrawal is followed by one that ends with one payout and one transfer', async () => {
  let deaths = 0
  let isWhole = false
  for (let lifetime = 1; lifetime < 80 && !isWhole; lifetime++) {
    const { stage, owner } = await anIdleStage()
    const { partner, payouts } = aPartner()
    const deps: Deps = { ...idle.server.deps, offRamps: { test: partner, live: undefined } }
    const body = NewWithdrawal.parse(bodyOf(stage))
    try {
      await createWithdrawal(ctxOf(mortal(deps, lifetime), owner), body)
      isWhole = true
    } catch (error) {
      expect(error).toBeInstanceOf(Death)
      deaths += 1
    }
    const [row, ...more] = await rowsOf(stage)
    expect(more).toEqual([])
    if (row === undefined) {
      expect(await countTransfers(stage), 'nothing was stored').toBe(0)
      continue
    }
    await follow(ctxOf(deps, owner), row.id)
    await follow(ctxOf(deps, owner), row.id)
    expect([payouts.size, await countTransfers(stage)], `after ${lifetime} steps`).toEqual([1, 1])
    expect(await rowsOf(stage)).toEqual([
      { id: row.id, payoutId: `p-${row.id}`, transferId: expect.any(String), status: 'pending_conversion' },
    ])
  }
  expect(isWhole).toBe(true)
  expect(deaths).toBeGreaterThan(10)
}, 180_000)

test('a request whose answer from the partner is lost is repeated with the same key, and one payout is agreed', async () => {
  const { stage, owner } = await anIdleStage()
  let isLost = true
  const { partner, payouts, requested } = aPartner({ fails: () => isLost })
  const deps: Deps = { ...idle.server.deps, offRamps: { test: partner, live: undefined } }
  const ctx = ctxOf(deps, owner)
  await expect(createWithdrawal(ctx, NewWithdrawal.parse(bodyOf(stage)))).rejects.toThrow('lost')
  const [row] = await rowsOf(stage)
  if (row === undefined) throw new Error('the withdrawal was not stored')
  expect([row.payoutId, await countTransfers(stage)]).toEqual([null, 0])
  isLost = false
  await Promise.all([follow(ctx, row.id), follow(ctx, row.id), follow(ctx, row.id)])
  expect([payouts.size, await countTransfers(stage)]).toEqual([1, 1])
  expect(requested.payouts).toBeGreaterThan(1)
})

test('a payout that expired before its tokens were reserved fails, and nothing is sent to it', async () => {
  const { stage, owner } = await anIdleStage()
  const deposit = { awaitsDeposit: true }
  const { partner } = aPartner({ payout: () => deposit })
  const deps: Deps = { ...idle.server.deps, offRamps: { test: partner, live: undefined } }
  await createWithdrawal(ctxOf(deps, owner), NewWithdrawal.parse(bodyOf(stage)))
  const [row] = await rowsOf(stage)
  if (row === undefined) throw new Error('the withdrawal was not stored')
  await idle.database.db.run(sql`update withdrawals set transfer_id = null where id = ${row.id}`)
  deposit.awaitsDeposit = false
  await follow(ctxOf(deps, owner), row.id)
  await follow(ctxOf(deps, owner), row.id)
  expect((await rowsOf(stage))[0]).toMatchObject({ status: 'failed', transferId: null })
  expect(await eventsOf(row.id, idle)).toEqual([
    { type: 'withdrawal.failed', payload: expect.objectContaining({ reason: 'payout-lapsed' }) },
  ])
})

test.each([
  ['another amount', { deposit: { address: `0x${'1'.repeat(40)}` as Address, rawAmount: 100_000_001n } }],
  ['no deposit', { awaitsDeposit: false }],
])('a partner that agrees on %s gets nothing', async (_, lie) => {
  const { stage, owner } = await anIdleStage()
  const { partner } = aPartner({ payout: () => lie })
  const deps: Deps = { ...idle.server.deps, offRamps: { test: partner, live: undefined } }
  const requested = createWithdrawal(ctxOf(deps, owner), NewWithdrawal.parse(bodyOf(stage)))
  await expect(requested).rejects.toMatchObject({ code: 'withdrawal-refused' })
  expect(await countTransfers(stage)).toBe(0)
})
