import {
  type BridgeRelayer,
  createBridgeRelayer,
  type DevChain,
  fundNative,
  fundSandbox,
  fundToken,
  sandboxBridgeAddress,
  sandboxPoolAddress,
  startChain,
  tokenBalance,
} from '@purser/devnet'
import type { Address } from '@purser/protocol'
import { createPublicClient, http } from 'viem'
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import { fail as partnerFails } from '../../src/partners/errors.ts'
import type { Quoted, RouteQuote, RouteStatus, RoutingPartner } from '../../src/partners/routing/port.ts'
import { sql } from '../../src/platform/db/db.ts'
import { type Answer, aWorld, codeOf, type Org, type World } from '../world.ts'

let base: DevChain
let ethereum: DevChain
let relayer: BridgeRelayer
let world: World
let org: Org
/** What stands between the service and the sandbox; told anew by each test. */
let conduct: Conduct

interface Conduct {
  readonly quote?: (quote: RouteQuote) => Quoted
  readonly status?: (own: () => Promise<RouteStatus>) => Promise<RouteStatus>
}

function behaving(sandbox: RoutingPartner): RoutingPartner {
  return {
    name: 'sandbox',
    async quote(asked) {
      const quoted = await sandbox.quote(asked)
      return quoted.ok && conduct.quote !== undefined ? conduct.quote(quoted.quote) : quoted
    },
    status: (route) => (conduct.status ?? ((own) => own()))(() => sandbox.status(route)),
  }
}

beforeAll(async () => {
  ;[base, ethereum] = await Promise.all([
    startChain({ network: 'base-sepolia' }),
    startChain({ network: 'eth-sepolia' }),
  ])
  await Promise.all([fundSandbox(base), fundSandbox(ethereum)])
  world = await aWorld({
    chains: [base, ethereum],
    config: {
      transferWaitMs: 20_000,
      partners: { sandbox: { pool: sandboxPoolAddress, bridge: sandboxBridgeAddress } },
    },
    boot: {
      routing: ({ test: { sandbox }, live }) => ({
        live,
        test: sandbox === undefined ? {} : { sandbox: behaving(sandbox) },
      }),
    },
  })
  org = await world.organisation()
})
afterAll(async () => {
  await world?.stop()
  await Promise.all([base?.stop(), ethereum?.stop()])
})
beforeEach(() => {
  conduct = {}
  relayer = createBridgeRelayer([base, ethereum])
})

interface Managed {
  readonly id: string
  readonly address: Address
}

const masters = '/wallet-infra/master-wallets'
const path = '/wallet-infra/transfer'

async function aMaster(
  rawUsdc = 100_000_000n,
  { at, key }: { readonly at: World; readonly key: string } = { at: world, key: org.testKey },
): Promise<Managed> {
  const { body } = await at.call(key, 'POST', masters, { chain: 'base', supportedTokens: ['USDC'] })
  const master = { id: String(body.id), address: body.address as Address }
  await fundNative(base, master.address, 10n ** 18n)
  if (rawUsdc > 0n) await fundToken(base, 'USDC', master.address, rawUsdc)
  return master
}

function stranger(): Address {
  return privateKeyToAddress(generatePrivateKey())
}

function swapOf(from: Managed, changes: Record<string, unknown> = {}) {
  const usual = { fromToken: 'ETH', toChain: 'base', toToken: 'USDC', amount: '0.01', toAddress: stranger() }
  return { fromWalletId: from.id, ...usual, ...changes }
}

function bridgeOf(from: Managed, changes: Record<string, unknown> = {}) {
  const usual = { fromToken: 'USDC', toChain: 'ethereum', toToken: 'USDC', amount: '50', toAddress: stranger() }
  return { fromWalletId: from.id, ...usual, ...changes }
}

function send(body: Record<string, unknown>): Promise<Answer> {
  return world.call(org.testKey, 'POST', path, body)
}

async function get(transfer: Answer): Promise<Record<string, unknown>> {
  return (await world.call(org.testKey, 'GET', `/wallet-infra/transfers/${transfer.body.id}`)).body
}

async function ended(transfer: Answer): Promise<Record<string, unknown>> {
  await expect.poll(async () => (await get(transfer)).status, { timeout: 20_000 }).not.toBe('pending')
  return get(transfer)
}

async function eventsOf(transferId: unknown): Promise<{ type: string; payload: Record<string, unknown> }[]> {
  return world.database.db.many(
    z.object({ type: z.string(), payload: z.record(z.string(), z.unknown()) }),
    sql`select type, payload from events where payload ->> 'transactionId' = ${String(transferId)} order by id`,
  )
}

/** The partner's last word of a transfer. */
async function partnerStatusOf(transfer: Answer): Promise<string | null | undefined> {
  const row = await world.database.db.maybeOne(
    z.object({ partnerStatus: z.string().nullable() }),
    sql`select partner_status from transfers where id = ${String(transfer.body.id)}`,
  )
  return row?.partnerStatus
}

async function countOf(master: Managed): Promise<number> {
  const { count } = await world.database.db.one(
    z.object({ count: z.bigint() }),
    sql`select count(*) as count from chain_transactions where sender = ${master.address}`,
  )
  return Number(count)
}

function coinOf(address: Address): Promise<bigint> {
  return createPublicClient({ transport: http(base.rpcUrl) }).getBalance({ address })
}

test('the coin becomes dollars at whoever was named, and the answer says how many came', async () => {
  const body = swapOf(await aMaster(0n))
  const sent = await send(body)
  const arrived = await tokenBalance(base, 'USDC', body.toAddress)
  expect([sent.status, sent.body.status, sent.body.route]).toEqual([201, 'confirmed', 'partner-swap'])
  expect(arrived).toBeGreaterThan(25_000_000n)
  expect(sent.body.toAmount).toBe((Number(arrived) / 1e6).toString())
  expect(sent.body.routeReason).toMatch(/the sandbox does it/)
  await expect.poll(async () => eventsOf(sent.body.id)).toEqual([])
})

test('a token is let go of to the unit, swapped for the coin, and nothing stays allowed', async () => {
  const master = await aMaster()
  const body = swapOf(master, { fromToken: 'USDC', toToken: 'ETH', amount: '30' })
  const sent = await send(body)
  expect([sent.status, sent.body.status]).toEqual([201, 'confirmed'])
  expect(await tokenBalance(base, 'USDC', master.address)).toBe(70_000_000n)
  const came = await coinOf(body.toAddress)
  expect(came).toBeGreaterThan(9n * 10n ** 15n)
  expect(sent.body.toAmount).toBe((await get(sent)).toAmount)
  expect(BigInt(Math.round(Number(sent.body.toAmount) * 1e9))).toBe((came + 5n * 10n ** 8n) / 10n ** 9n)
  const allowed = await createPublicClient({ transport: http(base.rpcUrl) }).readContract({
    address: '0x036CbD53842c5426634e7929541eC2318f3dCF7e',
    abi: [
      {
        type: 'function',
        name: 'allowance',
        stateMutability: 'view',
        inputs: [{ type: 'address' }, { type: 'address' }],
        outputs: [{ type: 'uint256' }],
      },
    ],
    functionName: 'allowance',
    args: [master.address, sandboxPoolAddress],
  })
  expect(allowed).toBe(0n)
})

test('a bridge is pending in the answer, pays out on the other chain, and its end is told once', async () => {
  const master = await aMaster()
  const body = bridgeOf(master)
  const sent = await send(body)
  expect([sent.status, sent.body.status, sent.body.route, sent.body.toAmount]).toEqual([
    201,
    'pending',
    'partner-bridge',
    '49.95',
  ])
  expect(sent.body.txHash).toMatch(/^0x/)
  expect(sent.body.routeReason).toMatch(/Sandbox keeps 0\.05 USDC/)
  // What has left the wallet is not counted as promised a second time.
  expect((await send(bridgeOf(master))).status).toBe(201)
  await relayer.pass()
  expect(await ended(sent)).toMatchObject({ status: 'confirmed', toAmount: '49.95', receivedToken: null })
  expect(await tokenBalance(ethereum, 'USDC', body.toAddress)).toBe(49_950_000n)
  await expect
    .poll(async () => (await eventsOf(sent.body.id)).map(({ type, payload }) => [type, payload.toAmount]))
    .toEqual([['transfer.completed', '49.95']])
})

test('a bridge that gives back is a failure with the money back, told once the refund is seen', async () => {
  const master = await aMaster()
  const policy = { operations: { transfer: { recipients: 'any' } }, tokens: { USDC: { perDay: '50' } } }
  expect((await world.call(org.testKey, 'PUT', `${masters}/${master.id}/policy`, policy)).status).toBe(200)
  const sent = await send(bridgeOf(master))
  relayer.tell('fail')
  await relayer.pass()
  await expect.poll(() => partnerStatusOf(sent), { timeout: 10_000 }).toBe('failed')
  expect((await get(sent)).status, 'the refund is waited for').toBe('pending')
  expect(await eventsOf(sent.body.id)).toEqual([])
  relayer.tell('refund')
  await relayer.pass()
  expect(await ended(sent)).toMatchObject({ status: 'failed', reason: 'refunded' })
  expect(await tokenBalance(base, 'USDC', master.address)).toBe(100_000_000n)
  const reserved = await world.database.db.many(
    z.object({ isReleased: z.boolean() }),
    sql`select released_at is not null as is_released from policy_reservations where master_wallet_id = ${master.id}`,
  )
  expect(reserved, 'the policy counts it no more').toEqual([{ isReleased: true }])
  const [told, ...more] = await eventsOf(sent.body.id)
  expect([told?.type, told?.payload.reason, more]).toEqual(['transfer.failed', 'refunded', []])
  expect(told?.payload.refundedAt).toEqual(expect.any(String))
})

test('a bridge that stalls is waited for, and one that delivers less says how much came', async () => {
  const master = await aMaster()
  const body = bridgeOf(master)
  const sent = await send(body)
  relayer.tell('stall')
  await relayer.pass()
  await expect.poll(() => partnerStatusOf(sent), { timeout: 10_000 }).toBe('deposited')
  expect((await get(sent)).status).toBe('pending')
  relayer.tell('less')
  await relayer.pass()
  const end = await ended(sent)
  const arrived = await tokenBalance(ethereum, 'USDC', body.toAddress)
  expect(arrived).toBeLessThan(30_000_000n)
  expect([end.status, Number(end.toAmount)]).toEqual(['confirmed', Number(arrived) / 1e6])
})

test('a partner that vanishes, or says what nobody documented, is waited for, and the end comes when it speaks again', async () => {
  const master = await aMaster()
  let asked = 0
  conduct = {
    status: async (own) => {
      asked += 1
      if (asked < 3) throw partnerFails('partner-unavailable')
      if (asked < 5) return { state: 'pending', partnerStatus: 'teleported', isUnknown: true }
      return own()
    },
  }
  const sent = await send(bridgeOf(master))
  await relayer.pass()
  expect(await ended(sent)).toMatchObject({ status: 'confirmed' })
  expect(asked).toBeGreaterThanOrEqual(5)
})

test('another token than was asked for is recorded and told', async () => {
  const master = await aMaster()
  conduct = {
    status: async () => ({
      state: 'completed',
      partnerStatus: 'PARTIAL',
      destinationTxHash: `0x${'ab'.repeat(32)}`,
      received: {
        chainId: ethereum.chainId,
        token: '0x0000000000000000000000000000000000000000',
        rawAmount: 10n ** 16n,
        isOther: true,
      },
    }),
  }
  const sent = await send(bridgeOf(master))
  const other = { receivedToken: 'ETH', toAmount: '0.01', destinationTxHash: `0x${'ab'.repeat(32)}` }
  expect(await ended(sent)).toMatchObject({ status: 'confirmed', ...other })
  expect((await eventsOf(sent.body.id))[0]).toMatchObject({ type: 'transfer.completed', payload: other })
})

const word = (value: bigint) => value.toString(16).padStart(64, '0')

test.each<[string, (quote: RouteQuote) => RouteQuote]>([
  [
    'a larger approval',
    (quote) => ({
      ...quote,
      calls: quote.calls.map((call, at) =>
        at === 0 ? { ...call, data: `${call.data.slice(0, 74)}${word(2n ** 200n)}` as `0x${string}` } : call,
      ),
    }),
  ],
  [
    'a call to another contract than is approved',
    (quote) => ({ ...quote, calls: quote.calls.map((call, at) => (at === 1 ? { ...call, to: stranger() } : call)) }),
  ],
  ['a call more', (quote) => ({ ...quote, calls: [...quote.calls, ...quote.calls] })],
  ['a call to the token itself', (quote) => ({ ...quote, calls: quote.calls.slice(0, 1) })],
  ['more than the slippage', (quote) => ({ ...quote, rawOutMin: quote.rawOut / 2n })],
  ['a quote that is over', (quote) => ({ ...quote, expiresAt: new Date(0) })],
])('a partner that asks for %s is refused before anything is signed', async (_, change) => {
  const master = await aMaster()
  conduct = { quote: (quote) => ({ ok: true, quote: change(quote) }) }
  const refused = await send(bridgeOf(master))
  expect([refused.status, codeOf(refused)]).toEqual([503, 'partner-unavailable'])
  expect(await countOf(master)).toBe(0)
})

test('what no partner carries is no route, and what the guard refused is no partner', async () => {
  const master = await aMaster()
  const across = await send(bridgeOf(master, { toToken: 'ETH' }))
  expect([across.status, codeOf(across), across.body.reason]).toEqual([422, 'no-route', 'no-route'])
  conduct = { quote: () => ({ ok: false, reason: 'unsafe', words: 'target-not-listed' }) }
  expect(codeOf(await send(bridgeOf(master)))).toBe('partner-unavailable')
  expect(await countOf(master)).toBe(0)
})

test('a quote that ran out while its approval was mined is not signed: the transfer fails and the money stays', async () => {
  const master = await aMaster()
  conduct = { quote: (quote) => ({ ok: true, quote: { ...quote, expiresAt: new Date(Date.now() + 60) } }) }
  const refused = await send(bridgeOf(master))
  expect([refused.status, codeOf(refused), refused.body.reason]).toEqual([422, 'transfer-reverted', 'quote-expired'])
  expect(await tokenBalance(base, 'USDC', master.address)).toBe(100_000_000n)
  expect(await countOf(master), 'the approval alone').toBe(1)
})

test('a call that the chain would refuse once its approval is there is not signed', async () => {
  const master = await aMaster()
  // The least that the call itself demands is more than the market gives.
  conduct = {
    quote: (quote) => ({
      ok: true,
      quote: {
        ...quote,
        calls: quote.calls.map((call, at) =>
          at === 1 ? { ...call, data: `0xdeadbeef${call.data.slice(10)}` as `0x${string}` } : call,
        ),
      },
    }),
  }
  const refused = await send(bridgeOf(master))
  expect([refused.status, codeOf(refused), refused.body.reason]).toEqual([422, 'transfer-reverted', 'call-refused'])
  expect(await countOf(master), 'the approval alone').toBe(1)
  expect(await tokenBalance(base, 'USDC', master.address)).toBe(100_000_000n)
})

test('what waits to be delivered is claimed once from the master, when it has gas there', async () => {
  const master = await aMaster()
  const claimed = stranger()
  let isDelivered = false
  conduct = {
    status: async () => {
      isDelivered ||=
        (await createPublicClient({ transport: http(ethereum.rpcUrl) }).getTransactionCount({
          address: master.address,
        })) > 0
      if (isDelivered) return { state: 'completed', partnerStatus: 'complete' }
      return {
        state: 'claimable',
        partnerStatus: 'complete',
        call: { chainId: ethereum.chainId, to: claimed, value: 0n, data: '0x' },
      }
    },
  }
  const sent = await send(bridgeOf(master))
  await expect.poll(() => partnerStatusOf(sent), { timeout: 10_000 }).toBe('complete: no gas to claim')
  expect((await get(sent)).status).toBe('pending')
  await fundNative(ethereum, master.address, 10n ** 18n)
  expect(await ended(sent)).toMatchObject({ status: 'confirmed', toAmount: '49.95' })
  expect(
    await createPublicClient({ transport: http(ethereum.rpcUrl) }).getTransactionCount({ address: master.address }),
  ).toBe(1)
})

test('a child bridges with gas from its master', async () => {
  const master = await aMaster(0n)
  const { body } = await world.call(org.testKey, 'POST', `${masters}/${master.id}/child-addresses`, {})
  const child = { id: String(body.id), address: body.address as Address }
  await fundToken(base, 'USDC', child.address, 20_000_000n)
  const asked = bridgeOf(child, { amount: '20' })
  const sent = await send(asked)
  expect([sent.status, sent.body.status]).toEqual([201, 'pending'])
  await relayer.pass()
  expect(await ended(sent)).toMatchObject({ status: 'confirmed' })
  expect(await tokenBalance(ethereum, 'USDC', asked.toAddress)).toBe(19_980_000n)
  expect(await tokenBalance(base, 'USDC', child.address)).toBe(0n)
})

test('the process that works dies after every step, and another goes on; the money moves once', async () => {
  const orphaned = await aWorld({
    chains: [base, ethereum],
    config: {
      role: 'api',
      transferWaitMs: 0,
      partners: { sandbox: { pool: sandboxPoolAddress, bridge: sandboxBridgeAddress } },
    },
  })
  try {
    const own = await orphaned.organisation()
    const master = await aMaster(100_000_000n, { at: orphaned, key: own.testKey })
    const asked = bridgeOf(master)
    const sent = await orphaned.call(own.testKey, 'POST', path, asked)
    expect([sent.status, sent.body.status]).toEqual([201, 'pending'])
    const { db } = orphaned.database
    const progressOf = async () =>
      (
        await db.one(
          z.object({ seen: z.string() }),
          sql`select concat((select count(transaction_id) from transfer_steps), '/', (select string_agg(status, ',' order by nonce)
            from chain_transactions), '/', (select concat(look_at is null, left_at is null, partner_status, status) from transfers)) as seen`,
        )
      ).seen
    const stages = new Set<string>()
    for (let seen = await progressOf(); !seen.endsWith('confirmed'); seen = await progressOf()) {
      stages.add(seen)
      const worker = await orphaned.another({ role: 'work' })
      await expect.poll(progressOf, { timeout: 20_000, interval: 5 }).not.toBe(seen)
      await worker.server.stop()
      await relayer.pass()
    }
    expect(stages.size, 'deaths at as many stages').toBeGreaterThanOrEqual(3)
    expect(await tokenBalance(ethereum, 'USDC', asked.toAddress)).toBe(49_950_000n)
    expect(await tokenBalance(base, 'USDC', master.address)).toBe(50_000_000n)
    const counted = await db.one(
      z.object({ sent: z.bigint(), told: z.bigint() }),
      sql`select (select count(*) from chain_transactions) as sent, (select count(*) from events where type = 'transfer.completed') as told`,
    )
    expect(counted).toEqual({ sent: 2n, told: 1n })
  } finally {
    await orphaned.stop()
  }
})
