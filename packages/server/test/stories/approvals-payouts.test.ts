import { type DevChain, fundNative, fundToken, startChain, tokenBalance } from '@purser/devnet'
import type { Address } from '@purser/protocol'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { sql } from '../../src/platform/db/db.ts'
import { aBrowser, type Browser, ownerOf } from '../people.ts'
import { untilBooked } from '../transfer-stage.ts'
import { type Answer, aPayer, aWorld, codeOf, type Org, type Payer, unreachableMain, type World } from '../world.ts'

// Approvals of withdrawals, refunds and the legacy wallet, decided by an owner who is alone.

let chain: DevChain
let world: World
let org: Org
let payer: Payer
let owner: Browser
const patient = { timeout: 60_000 }
const masters = '/wallet-infra/master-wallets'

beforeAll(async () => {
  chain = await startChain({ network: 'base-sepolia' })
  world = await aWorld({ chains: [chain], rpcUrls: { ...unreachableMain, 'base-sepolia': [chain.rpcUrl] } })
  org = await world.organisation()
  payer = await aPayer(chain)
  owner = await aBrowser(world, { email: await ownerOf(world, org.id), organisationId: org.id })
})
afterAll(async () => {
  await world?.stop()
  await chain?.stop()
})

const call = (method: string, path: string, body?: unknown): Promise<Answer> =>
  world.call(org.testKey, method, path, body)

async function aMaster(approvalAbove: string, caps: Readonly<Record<string, unknown>> = {}) {
  const { body } = await call('POST', masters, { chain: 'base', supportedTokens: ['USDC'] })
  const master = { id: String(body.id), address: body.address as Address }
  await fundNative(chain, master.address, 10n ** 18n)
  await fundToken(chain, 'USDC', master.address, 200_000_000n)
  await untilBooked(world, chain)
  const operations = { transfer: { recipients: 'any' }, withdraw: { recipients: 'any' } }
  const policy = { operations, tokens: { USDC: { approvalAbove }, ...caps } }
  expect((await call('PUT', `${masters}/${master.id}/policy`, policy)).status).toBe(200)
  return master
}

async function withdraw(master: { readonly id: string }) {
  const gbp = { accountName: 'Acme Ltd', currency: 'GBP', sortCode: '20-29-59', accountNumber: '63748472' }
  const bankAccountId = String((await call('POST', '/wallet-infra/bank-accounts', gbp)).body.id)
  const body = {
    fromWalletId: master.id,
    token: 'USDC',
    chain: 'base',
    amount: '100',
    bankAccountId,
    reference: 'Rent',
  }
  return { bankAccountId, made: await call('POST', '/wallet-infra/withdraw', body) }
}

async function aWithdrawal() {
  const master = await aMaster('80')
  const { bankAccountId, made } = await withdraw(master)
  expect(await countReserved(String(made.body.id))).toBe(3n)
  expect([made.status, made.body.status, made.body.txHash]).toEqual([202, 'pending_conversion', null])
  return { master, bankAccountId, id: String(made.body.id), approvalId: approvalIdOf(made) }
}

function approvalIdOf({ body }: Answer): string {
  return z.object({ id: z.string(), status: z.literal('waiting') }).parse(body.approval).id
}

const withdrawalOf = async (id: string) => (await call('GET', `/wallet-infra/withdrawals/${id}`)).body

async function payoutOf(id: string): Promise<string | null> {
  const row = await world.database.db.one(
    z.object({ payoutId: z.string().nullable() }),
    sql`select payout_id from withdrawals where id = ${id}`,
  )
  return row.payoutId
}

async function countReserved(id: string): Promise<bigint> {
  const { count } = await world.database.db.one(
    z.object({ count: z.bigint() }),
    sql`
    select (select count(*) from reservations where subject_id = ${id} and ended_at is null)
      + (select count(*) from policy_reservations where starts_with(subject_id, ${id}) and released_at is null and atto_amount > 0) as count`,
  )
  return count
}

test('a withdrawal above the limit reaches no partner before an owner, who is alone, approves it', async () => {
  const { master, bankAccountId, id, approvalId } = await aWithdrawal()
  const { body } = await call('GET', `/approvals/${approvalId}`)
  expect(body).toMatchObject({
    kind: 'withdrawal',
    withdrawalId: id,
    transferId: null,
    to: bankAccountId,
    note: 'Rent',
  })
  // Its funds are reserved: 100 of 200 are left for others.
  const more = { fromWalletId: master.id, fromToken: 'USDC', toChain: 'base', toToken: 'USDC' }
  const short = await call('POST', '/wallet-infra/transfer/quote', {
    ...more,
    amount: '101',
    toAddress: payer.account.address,
  })
  expect(codeOf(short)).toBe('insufficient-balance')
  expect(await payoutOf(id)).toBeNull()

  // It waited twenty hours for its approval, from which its polls count: it is not polled like an old one.
  await world.database.db.run(
    sql`update withdrawals set created_at = created_at - interval '20 hours' where id = ${id}`,
  )
  expect((await owner.call('POST', `/approvals/${approvalId}/approve`)).body.status).toBe('granted')
  await expect.poll(async () => (await withdrawalOf(id)).status, patient).toBe('completed')
  expect(await tokenBalance(chain, 'USDC', master.address)).toBe(100_000_000n)
})

test('a refused withdrawal fails without a payout, and its funds and its part of the caps are free', async () => {
  const { master, id, approvalId } = await aWithdrawal()
  expect((await owner.call('POST', `/approvals/${approvalId}/refuse`, {})).status).toBe(200)
  await expect.poll(async () => (await withdrawalOf(id)).status, patient).toBe('failed')
  expect(await withdrawalOf(id)).toMatchObject({
    reason: 'approval-refused',
    refund: null,
    approval: { status: 'refused' },
  })
  expect(await payoutOf(id)).toBeNull()
  expect(await countReserved(id)).toBe(0n)
  expect(await tokenBalance(chain, 'USDC', master.address)).toBe(200_000_000n)
})

test('the gas of a withdrawal counts towards the caps of the coin from its request on, once', async () => {
  const withCap = (perDay: string) => aMaster('200', { ETH: { perTransaction: '0', perDay } })
  const subjectsOfGas = async ({ id }: { readonly id: string }) => {
    const rows = await world.database.db.many(
      z.object({ subjectId: z.string() }),
      sql`
      select subject_id from policy_reservations where master_wallet_id = ${id} and operation = 'gas' and atto_amount > 0`,
    )
    return rows.map(({ subjectId }) => subjectId)
  }
  const cap = '0.000000000000000001'
  const [poor, rich] = [await withCap(cap), await withCap('1')]
  const { made: refused } = await withdraw(poor)
  expect([refused.status, codeOf(refused)]).toEqual([403, 'policy-denied'])
  expect(refused.body).toMatchObject({ rule: 'perDay', operation: 'withdraw', token: 'ETH', cap, used: '0' })
  expect(await subjectsOfGas(poor)).toEqual([])
  const { made } = await withdraw(rich)
  expect(made.status).toBe(201)
  expect(await subjectsOfGas(rich)).toEqual([expect.stringMatching(/^wtx_/)])
})

test('a withdrawal whose bank account was deleted while it waited pays nobody, whoever approves it, and its funds are free', async () => {
  const { master, bankAccountId, id, approvalId } = await aWithdrawal()
  expect((await call('DELETE', `/wallet-infra/bank-accounts/${bankAccountId}`)).status).toBe(204)
  expect((await owner.call('POST', `/approvals/${approvalId}/approve`)).status).toBe(200)
  await expect.poll(async () => (await withdrawalOf(id)).status, patient).toBe('failed')
  expect(await withdrawalOf(id)).toMatchObject({ reason: 'bank-account-not-found', refund: 'none' })
  expect([await payoutOf(id), await countReserved(id)]).toEqual([null, 0n])
  expect(await tokenBalance(chain, 'USDC', master.address)).toBe(200_000_000n)
})

test('a refund above the limit waits; refused it can be made again, and approved it reaches the payer', async () => {
  const master = await aMaster('0.005')
  const terms = { walletId: master.id, price: '0.01', resource: 'https://api.example.com/weather' }
  const offer = await call('POST', '/payments/challenge', terms)
  const shown = { ...terms, protocol: 'x402', credential: await payer.credential(offer), method: 'GET' }
  const { paymentId, settlementToken } = (await call('POST', '/payments/verify', shown)).body
  expect((await call('POST', '/payments/settle', { paymentId, settlementToken })).status).toBe(200)
  const refund = () => call('POST', `/payments/${paymentId}/refund`, { fromWalletId: master.id, reason: 'Lost.' })

  const first = await refund()
  expect([first.status, first.body.status]).toEqual([202, 'pending'])
  const approvalId = approvalIdOf(first)
  expect((await call('GET', `/approvals/${approvalId}`)).body).toMatchObject({
    kind: 'refund',
    paymentId,
    note: 'Lost.',
  })
  expect(codeOf(await refund())).toBe('refund-exceeds-payment')
  expect((await owner.call('POST', `/approvals/${approvalId}/refuse`, {})).status).toBe(200)
  await expect.poll(async () => (await call('GET', `/payments/${paymentId}`)).body.refundedAmount, patient).toBe('0')

  const before = await tokenBalance(chain, 'USDC', payer.account.address)
  const again = await refund()
  expect((await owner.call('POST', `/approvals/${approvalIdOf(again)}/approve`)).status).toBe(200)
  await expect.poll(() => tokenBalance(chain, 'USDC', payer.account.address), patient).toBe(before + 10_000n)
})
