import { randomBytes } from 'node:crypto'
import { fundNative, fundToken, sandboxBridgeAddress, sandboxPoolAddress, tokenBalance } from '@purser/devnet'
import type { Address } from '@purser/protocol'
import {
  createPublicClient,
  createTestClient,
  createWalletClient,
  erc20Abi,
  http,
  parseEther,
  publicActions,
} from 'viem'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import { sql } from '../../src/platform/db/db.ts'
import {
  aPartnerStage,
  bridgeOf,
  type Managed,
  masters,
  type PartnerStage,
  path,
  stranger,
  swapOf,
} from '../partner-stage.ts'
import { createFakeScreening, type FakeScreening } from '../screening-double.ts'
import { patient, untilBooked } from '../transfer-stage.ts'
import { type Answer, codeOf, countByStatus, request } from '../world.ts'

const withdrawPath = '/wallet-infra/withdraw'
const gbp = { accountName: 'Acme Ltd', currency: 'GBP', sortCode: '20-29-59', accountNumber: '63748472' }

let stage: PartnerStage
let screening: FakeScreening
/** Another process, without a gas budget: what a child cannot pay comes from its master. */
let frugal: string

beforeAll(async () => {
  screening = createFakeScreening(() => new Date())
  stage = await aPartnerStage({ boot: { screening, depositPollMsMax: 100 } })
  frugal = (await stage.world.another({ role: 'api', settleNanoUsdPerDayMax: 0n })).base
})
afterAll(() => stage?.stop())
beforeEach(() => {
  stage.renew()
  screening.isStale = false
})

const usdcOf = (address: Address) => tokenBalance(stage.base, 'USDC', address)
const usdcAt = async (addresses: readonly Address[]) =>
  (await Promise.all(addresses.map(usdcOf))).reduce((sum, raw) => sum + raw, 0n)

async function aChild(master: Managed, rawUsdc: bigint): Promise<Managed> {
  const { body } = await stage.world.call(stage.org.testKey, 'POST', `${masters}/${master.id}/child-addresses`, {})
  const child = { id: String(body.id), address: body.address as Address }
  if (rawUsdc > 0n) await fundToken(stage.base, 'USDC', child.address, rawUsdc)
  return child
}

const booked = () => untilBooked(stage.world, stage.base)
const post = (place: string, body: unknown, headers: Record<string, string> = {}) =>
  stage.world.call(stage.org.testKey, 'POST', place, body, headers)
const sweep = (master: Managed, headers: Record<string, string> = {}) =>
  post(`${masters}/${master.id}/sweep`, { token: 'USDC' }, headers)

/** Sends a request until it is not refused for want of a place: on a slow machine the queue of one wallet is longer than a request may wait. */
async function sure(requested: () => Promise<Answer>): Promise<Answer> {
  const until = Date.now() + patient.timeout
  for (;;) {
    const answer = await requested()
    if (answer.status !== 503 || codeOf(answer) !== 'service-unavailable' || Date.now() > until) return answer
  }
}

const directOf = (from: Managed, amount: string, toAddress = stranger()) =>
  bridgeOf(from, { toChain: 'base', amount, toAddress })
const saleOf = (from: Managed, amount: string) =>
  swapOf(from, { fromToken: 'USDC', toToken: 'ETH', amount, minToAmount: '0.000000001' })

async function aBankAccount(): Promise<string> {
  return String((await post('/wallet-infra/bank-accounts', gbp)).body.id)
}

/** Waits until nothing of these wallets is open. */
async function untilAtRest(wallets: readonly Managed[]): Promise<void> {
  const addresses = wallets.map(({ address }) => address)
  const open = async () => {
    await stage.relayer.pass()
    const { count } = await stage.world.database.db.one(
      z.object({ count: z.bigint() }),
      sql`select (select count(*) from transfers where from_address = any(${addresses}::text[]) and ended_at is null)
        + (select count(*) from sweep_transfers where from_address = any(${addresses}::text[]) and status in ('planned', 'signed', 'sent')) as count`,
    )
    return count
  }
  await expect.poll(open, { ...patient, interval: 300 }).toBe(0n)
}

const Ended = z.object({ status: z.string(), reason: z.string().nullable(), raw: z.string().transform(BigInt) })

function endsOf(wallets: readonly Managed[]) {
  return stage.world.database.db.many(
    Ended,
    sql`select status, reason, raw_amount::text as raw from transfers
      where from_address = any(${wallets.map(({ address }) => address)}::text[]) and from_token = 'USDC'`,
  )
}

test('transfers, swaps, bridges, withdrawals and sweeps of one family at once move what was accepted, to the unit, and none fails', async () => {
  const master = await stage.aMaster(170_000_007n)
  const child = await aChild(master, 30_000_000n)
  const bankAccountId = await aBankAccount()
  await booked()
  const withdrawal = () =>
    post(withdrawPath, { fromWalletId: master.id, token: 'USDC', chain: 'base', amount: '50', bankAccountId })
  const answers = await Promise.all([
    ...['11.000001', '11.000001', '17.3', '17.3', '23'].map((amount) =>
      sure(() => stage.send(directOf(master, amount))),
    ),
    ...['13.7', '13.7', '8'].map((amount) => sure(() => stage.send(saleOf(master, amount)))),
    ...['20', '20.5'].map((amount) => sure(() => stage.send(bridgeOf(master, { amount })))),
    ...[sure(withdrawal), sure(withdrawal)],
    ...['9', '9', '9', '9'].map((amount) => sure(() => stage.send(directOf(child, amount)))),
    ...[sure(() => sweep(master)), sure(() => sweep(master))],
  ])
  const refused = answers.filter(({ status }) => status >= 300)
  expect(refused.filter((one) => codeOf(one) !== 'insufficient-balance').map(({ body }) => body)).toEqual([])
  expect(refused.length).toBeGreaterThan(0)
  await untilAtRest([master, child])
  const ends = await endsOf([master, child])
  expect(ends.filter(({ status }) => status !== 'confirmed')).toEqual([])
  const sent = ends.reduce((sum, { raw }) => sum + raw, 0n)
  expect((await usdcAt([master.address, child.address])) + sent).toBe(200_000_007n)
  for (const spender of [sandboxPoolAddress, sandboxBridgeAddress] as const)
    expect(await allowed(master, spender)).toBe(0n)
})

function allowed({ address: owner }: Managed, spender: Address): Promise<bigint> {
  const client = createPublicClient({ transport: http(stage.base.rpcUrl) })
  const address = stage.base.tokens.USDC ?? '0x'
  return client.readContract({ address, abi: erc20Abi, functionName: 'allowance', args: [owner, spender] })
}

test('swaps of ten children at once at two processes spend of their master no more coin than its cap, and a child may still send its rest home', async () => {
  const master = await stage.aMaster(0n)
  const children = await Promise.all(Array.from({ length: 10 }, () => aChild(master, 3_000_000n)))
  await booked()
  const tokens = { USDC: { perDay: '1000' }, ETH: { perTransaction: '0', perDay: '0.0008' } }
  const policy = { operations: { transfer: { recipients: 'any' } }, tokens }
  const set = await stage.world.call(stage.org.testKey, 'PUT', `${masters}/${master.id}/policy`, policy)
  expect(set.status).toBe(200)
  const at = (base: string, body: unknown) => request(base, { key: stage.org.testKey, method: 'POST', path, body })
  const answers = await Promise.all(
    children.flatMap((child) => [
      sure(() => at(stage.world.base, saleOf(child, '1'))),
      sure(() => at(frugal, saleOf(child, '1'))),
      sure(() => at(frugal, directOf(child, '0.5'))),
    ]),
  )
  const refused = answers.filter(({ status }) => status !== 201)
  expect(new Set(refused.map(({ status, body: { rule, token } }) => `${status} ${rule} ${token}`))).toEqual(
    new Set(['403 perDay ETH']),
  )
  expect(refused.length).toBeLessThan(answers.length)
  await untilAtRest([master, ...children])
  expect(10n ** 18n - (await stage.coinOf(master.address))).toBeLessThanOrEqual(parseEther('0.0008'))
  const rich = await aChild(master, 0n)
  await fundNative(stage.base, rich.address, parseEther('0.01'))
  const coin = { fromToken: 'ETH', toToken: 'ETH', toAddress: master.address }
  expect((await stage.send({ ...directOf(rich, '0.005'), ...coin })).status).toBe(201)
})

const sender = (): Address => `0x${randomBytes(20).toString('hex')}`

/** An account of somebody else pays a wallet; the money is in the newest block. */
async function payFrom(from: Address, to: Address, rawAmount: bigint): Promise<void> {
  await fundToken(stage.base, 'USDC', from, rawAmount)
  await fundNative(stage.base, from, 10n ** 18n)
  const transport = http(stage.base.rpcUrl)
  const node = createTestClient({ mode: 'anvil', transport }).extend(publicActions)
  await node.impersonateAccount({ address: from })
  const address = stage.base.tokens.USDC ?? '0x'
  const call = { address, abi: erc20Abi, functionName: 'transfer', args: [to, rawAmount] } as const
  const hash = await createWalletClient({ account: from, transport }).writeContract({ ...call, chain: null })
  await node.waitForTransactionReceipt({ hash, pollingInterval: 5 })
}

test.each([
  ['listed', { result: 'flagged', reason: 'listed', oracle: 'clean' }, false],
  ['unknown while the list is stale', { result: 'pending', reason: 'list-stale', oracle: 'failed' }, true],
] as const)(
  'money whose sender is %s leaves by no operation while it is in the newest block, and the wallet’s own money does',
  async (_, screened, isStale) => {
    const bankAccountId = await aBankAccount()
    for (let round = 0; round < 4; round += 1) {
      const master = await stage.aMaster(60_000_000n)
      const child = await aChild(master, 4_000_000n)
      await booked()
      const from = sender()
      screening.setResult(from, screened)
      if (!isStale) screening.swapList([from])
      screening.isStale = isStale
      const strangers: Address[] = []
      const toStranger = (wallet: Managed, amount: string) => {
        const toAddress = stranger()
        strangers.push(toAddress)
        return stage.send(directOf(wallet, amount, toAddress))
      }
      const withdrawal = { fromWalletId: master.id, token: 'USDC', chain: 'base', amount: '61', bankAccountId }
      await payFrom(from, child.address, 50_000_000n)
      await payFrom(from, master.address, 50_000_000n)
      const answers: Answer[] = []
      for (let again = 0; again < 3; again += 1)
        answers.push(
          ...(await Promise.all([
            ...[toStranger(child, '4.000001'), toStranger(child, '30'), toStranger(master, '60.000001')],
            ...[post(withdrawPath, withdrawal), stage.send(saleOf(master, '61')), stage.send(bridgeOf(child))],
          ])),
        )
      const swept = await sweep(master)
      expect(countByStatus(answers)[201] ?? 0, `round ${round}`).toBe(0)
      // Where nobody can say yet, a sweep waits for the child's whole money.
      if (!isStale) await untilAtRest([master, child])
      expect(await usdcAt(strangers)).toBe(0n)
      expect([swept.status, (await usdcOf(child.address)) >= 50_000_000n]).toEqual([202, true])
      await expect.poll(async () => (await toStranger(master, '60')).status, { ...patient, interval: 300 }).toBe(201)
    }
  },
)

test('of operations at once with one Idempotency-Key one is made, and the others are refused by name', async () => {
  const master = await stage.aMaster(500_000_000n)
  const bankAccountId = await aBankAccount()
  await booked()
  for (let round = 0; round < 4; round += 1) {
    const key = { 'idempotency-key': `one-${round}` }
    const withdrawal = { fromWalletId: master.id, token: 'USDC', chain: 'base', amount: '50', bankAccountId }
    // Each body is made once: a repeat with another random address would be another request.
    const [first, second, sale] = [directOf(master, '7'), directOf(master, '7'), saleOf(master, '7')]
    const operations = [
      ...[() => post(path, first, key), () => post(path, second, key), () => post(withdrawPath, withdrawal, key)],
      ...[() => post(path, sale, key), () => sweep(master, key)],
    ]
    const answers = await Promise.all(operations.map((operation) => operation()))
    const made = answers.filter(({ status }) => status < 300)
    expect(made.length, JSON.stringify(answers.map(({ body }) => body))).toBe(1)
    const others = answers.filter(({ status }) => status >= 300).map(codeOf)
    expect(others.every((code) => code === 'idempotency-key-reused' || code === 'idempotency-in-progress')).toBe(true)
    const later = await Promise.all(operations.map(sure))
    expect(
      later.filter(({ status }) => status < 300).map(({ body }) => body.id),
      JSON.stringify(later.map(({ body }) => body)),
    ).toEqual([made[0]?.body.id])
  }
})
