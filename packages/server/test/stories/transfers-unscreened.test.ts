import { randomBytes } from 'node:crypto'
import { type DevChain, fundNative, fundToken, startChain } from '@purser/devnet'
import { type Address, networkByName, tokenBySymbol } from '@purser/protocol'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import { screeningRecurring } from '../../src/features/wallets/index.ts'
import { sql } from '../../src/platform/db/db.ts'
import { newId } from '../../src/platform/ids.ts'
import { systemCtx } from '../../src/platform/work/runner.ts'
import { createFakeScreening, type FakeScreening } from '../screening-double.ts'
import { ShiftedClock } from '../webhooks/clock.ts'
import { type Answer, aWorld, codeOf, type Org, type World } from '../world.ts'

/** No background work: a test says what was seen and when it is screened, and accepted transfers stay `pending`. */
let base: DevChain
let ethereum: DevChain
let world: World
let org: Org
let clock: ShiftedClock
let screening: FakeScreening

beforeAll(async () => {
  ;[base, ethereum] = await Promise.all([
    startChain({ network: 'base-sepolia' }),
    startChain({ network: 'eth-sepolia' }),
  ])
  clock = new ShiftedClock()
  screening = createFakeScreening(() => clock.now())
  const config = { role: 'api', transferWaitMs: 0 } as const
  world = await aWorld({ chains: [base, ethereum], config, boot: { clock, screening } })
})
beforeEach(async () => {
  org = await world.organisation()
  screening.isStale = false
})
afterAll(async () => {
  await world?.stop()
  await Promise.all([base?.stop(), ethereum?.stop()])
})

const masters = '/wallet-infra/master-wallets'
const minuteMs = 60_000

interface Managed {
  readonly id: string
  readonly address: Address
}

async function funded(chain: DevChain, { body }: Answer, rawUsdc: bigint): Promise<Managed> {
  const wallet = { id: String(body.id), address: body.address as Address }
  await fundNative(chain, wallet.address, 10n ** 18n)
  await fundToken(chain, 'USDC', wallet.address, rawUsdc)
  return wallet
}

async function aMaster(rawUsdc = 5_000_000n): Promise<Managed> {
  const request = { chain: 'base', supportedTokens: ['USDC'] }
  return funded(base, await world.call(org.testKey, 'POST', masters, request), rawUsdc)
}

const sender = (): Address => `0x${randomBytes(20).toString('hex')}`

/** A deposit that the watcher has just seen; the money itself is there already. */
async function seen(walletId: string, rawAmount: bigint, { from = sender(), on = base } = {}): Promise<void> {
  const hash = `0x${randomBytes(32).toString('hex')}`
  const now = clock.now()
  const network = networkByName(on.network)
  const token = network && tokenBySymbol(network, 'USDC')?.address
  await world.database.db.run(sql`
    insert into wallet_transactions (id, organisation_id, environment, wallet_id, network, chain, tx_hash, log_index, direction, kind, status,
      token, token_symbol, decimals, raw_amount, from_address, to_address, block_number, block_hash, block_time, created_at)
    values (${newId('wtx', world.server.deps)}, ${org.id}, 'test', ${walletId}, ${on.network}, 'base', ${hash}, 0, 'in', 'transfer', 'pending',
      ${token}, 'USDC', 6, ${rawAmount.toString()}, ${from}, ${from}, 1, ${hash}, ${now}, ${now})`)
}

async function screenWhatIsDue(): Promise<void> {
  for (const work of screeningRecurring) await work.run(systemCtx(world.server.deps))
}

function bodyFrom(from: Managed, amount = '2.5') {
  const moved = { fromToken: 'USDC', toChain: 'base', toToken: 'USDC', toAddress: sender() }
  return { fromWalletId: from.id, ...moved, amount }
}

const send = (from: Managed, amount?: string) =>
  world.call(org.testKey, 'POST', '/wallet-infra/transfer', bodyFrom(from, amount))
const quote = (from: Managed, amount?: string) =>
  world.call(org.testKey, 'POST', '/wallet-infra/transfer/quote', bodyFrom(from, amount))

const refused = (required: string, available: string, held: string) => ({
  status: 422,
  balances: [{ token: 'USDC', required, available, held }],
})
const reported = ({ status, body: { balances } }: Answer) => ({ status, balances })

async function transfersOf(from: Managed): Promise<number> {
  return (await world.call(org.testKey, 'GET', `/wallet-infra/transfers?fromWalletId=${from.id}`)).list.length
}

test('money whose sender is not screened yet is not sent on, the refusal has the amount on hold, and screened money is sent', async () => {
  const master = await aMaster()
  await seen(master.id, 3_000_000n)
  expect(reported(await send(master))).toEqual(refused('2.5', '2', '3'))
  expect(reported(await quote(master))).toEqual(refused('2.5', '2', '3'))
  expect(await transfersOf(master)).toBe(0)
  expect((await send(master, '2')).status, 'the earlier balance can be sent').toBe(201)
  expect(reported(await send(master, '1'))).toEqual(refused('1', '0', '3'))
  await screenWhatIsDue()
  expect((await send(master, '3')).status).toBe(201)
})

test('a flagged sender’s money stays frozen, and none of it is on hold any more', async () => {
  const [master, from] = [await aMaster(), sender()]
  screening.setResult(from, { result: 'flagged', reason: 'listed', oracle: 'clean' })
  await seen(master.id, 3_000_000n, { from })
  expect(reported(await send(master))).toEqual(refused('2.5', '2', '3'))
  await screenWhatIsDue()
  expect((await send(master)).body.balances).toEqual([{ token: 'USDC', required: '2.5', available: '2' }])
})

test('money stays on hold for as long as no source can screen its sender, and one source that can releases it', async () => {
  const [late, stale, from] = [await aMaster(), await aMaster(), sender()]
  screening.setResult(from, { result: 'pending', reason: 'list-stale', oracle: 'failed' })
  await seen(late.id, 5_000_000n, { from })
  await screenWhatIsDue()
  clock.forward(60 * minuteMs)
  expect(reported(await send(late))).toEqual(refused('2.5', '0', '5'))
  await seen(stale.id, 5_000_000n, { from })
  screening.isStale = true
  expect(reported(await send(stale))).toEqual(refused('2.5', '0', '5'))
  screening.setResult(from, { result: 'pending', reason: 'list-stale', oracle: 'clean' })
  clock.forward(60 * minuteMs)
  await screenWhatIsDue()
  expect((await send(late)).status).toBe(201)
})

test('a hold at one wallet, of one token, on one network affects nothing else', async () => {
  const [master, other] = [await aMaster(), await aMaster()]
  await seen(other.id, 5_000_000n)
  await seen(master.id, 5_000_000n, { on: ethereum })
  expect((await quote(master)).status).toBe(200)
  const coin = { ...bodyFrom(other, '0.1'), fromToken: 'ETH', toToken: 'ETH' }
  expect((await world.call(org.testKey, 'POST', '/wallet-infra/transfer/quote', coin)).status).toBe(200)
})

test('a child address has holds like its master', async () => {
  const master = await aMaster(1n)
  const child = await funded(
    base,
    await world.call(org.testKey, 'POST', `${masters}/${master.id}/child-addresses`, {}),
    5_000_000n,
  )
  await seen(child.id, 3_000_000n)
  expect(reported(await send(child))).toEqual(refused('2.5', '2', '3'))
})

test('the legacy wallet has holds too', async () => {
  const wallet = await funded(ethereum, await world.call(org.testKey, 'POST', '/wallets', { coin: 'USDC' }), 5_000_000n)
  await seen(wallet.id, 3_000_000n, { on: ethereum })
  const withdraw = (amount: string) =>
    world.call(org.testKey, 'POST', '/wallets/withdraw', { to: sender(), amount, coin: 'USDC' })
  expect(reported(await withdraw('2.5'))).toEqual(refused('2.5', '2', '3'))
  expect((await withdraw('2')).status).toBe(202)
})

test('a withdrawal of money on hold is refused before the bank’s partner gets a request', async () => {
  const master = await aMaster(100_000_000n)
  const gbp = { accountName: 'Acme Ltd', currency: 'GBP', sortCode: '20-29-59', accountNumber: '63748472' }
  const account = await world.call(org.testKey, 'POST', '/wallet-infra/bank-accounts', gbp)
  await seen(master.id, 60_000_000n)
  const body = { fromWalletId: master.id, token: 'USDC', chain: 'base', amount: '50', bankAccountId: account.body.id }
  expect(reported(await world.call(org.testKey, 'POST', '/wallet-infra/withdraw', body))).toEqual(
    refused('50', '40', '60'),
  )
  expect((await world.call(org.testKey, 'GET', '/wallet-infra/withdrawals')).list).toEqual([])
  await screenWhatIsDue()
  expect((await world.call(org.testKey, 'POST', '/wallet-infra/withdraw', body)).status).toBe(201)
})

/** Runs the work when a transfer has been evaluated and is about to be stored. */
async function whileEvaluated(master: Managed, amount: string, work: () => Promise<void>): Promise<Answer> {
  const { db } = world.database
  const Blocked = z.object({ is: z.boolean() })
  const isBlocked = () =>
    db.one(
      Blocked,
      sql`select exists (select from pg_stat_activity where datname = current_database() and wait_event = 'advisory') as is`,
    )
  let sending: Promise<Answer> | undefined
  await db.tx(async (tx) => {
    const key = `funds:base-sepolia/${master.address.toLowerCase()}`
    await tx.run(sql`select pg_advisory_xact_lock(hashtextextended(${key}, 0))`)
    sending = send(master, amount)
    sending.catch(() => undefined)
    await expect.poll(isBlocked, { timeout: 90_000 }).toEqual({ is: true })
    await work()
  })
  if (sending === undefined) throw new Error('nothing was sent')
  return sending
}

test('a deposit that is seen after the wallet was evaluated and before the transfer is stored holds the transfer back', async () => {
  const master = await aMaster()
  const answer = await whileEvaluated(master, '2.5', () => seen(master.id, 3_000_000n))
  expect(codeOf(answer)).toBe('insufficient-balance')
  expect(reported(answer)).toEqual(refused('2.5', '2', '3'))
  expect(await transfersOf(master)).toBe(0)
})

test('money that arrives while a wallet is evaluated takes nothing from its earlier balance', async () => {
  const master = await aMaster()
  const answer = await whileEvaluated(master, '5', async () => {
    await fundToken(base, 'USDC', master.address, 3_000_000n)
    await seen(master.id, 3_000_000n)
  })
  expect(answer.status).toBe(201)
})

test('money frozen after the wallet was evaluated and before the transfer is stored is not sent', async () => {
  const [master, from] = [await aMaster(), sender()]
  await seen(master.id, 3_000_000n, { from })
  await screenWhatIsDue()
  screening.setResult(from, { result: 'flagged', reason: 'listed', oracle: 'clean' })
  screening.swapList([from])
  const answer = await whileEvaluated(master, '2.5', screenWhatIsDue)
  expect(answer.body.balances).toEqual([{ token: 'USDC', required: '2.5', available: '2' }])
})
