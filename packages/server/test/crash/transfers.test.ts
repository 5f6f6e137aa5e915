import { setTimeout as delay } from 'node:timers/promises'
import { type DevChain, type FaultMode, type FaultProxy, fundNative, startChain, startFaultProxy } from '@purser/devnet'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { freshDatabase, type TestDatabase } from '../database.ts'
import { request } from '../world.ts'
import { type Fleet, keepFleet } from './fleet.ts'
import { mulberry32, seed } from './seed.ts'
import { endEveryService, serveEnv } from './service.ts'
import { foundOrganisation } from './stage.ts'
import { countOpen, expectTransfersToAgree, holdingsOf } from './transfer-books.ts'
import { type Caller, post, someTransfers, someWallets, startTransfers } from './transfer-load.ts'

const processes = 2
const masters = 10
/** `CRASH_TRANSFERS=500` makes a long one. */
const transfers = Number(process.env.CRASH_TRANSFERS ?? 250)
const callers = 40
const kills = 5

let database: TestDatabase
let chain: DevChain
let node: FaultProxy
let fleet: Fleet
let caller: Caller

beforeAll(async () => {
  database = await freshDatabase({ plans: 'general' })
  chain = await startChain({ network: 'base-sepolia', blockTimeSeconds: 0.25 })
  node = await startFaultProxy(chain.rpcUrl)
  const { testKey } = await foundOrganisation(database.url)
  const env = serveEnv(database.url, {
    RPC_URL_BASE_SEPOLIA: node.url,
    RPC_TIMEOUT_MS: '1000',
    TRANSFER_WAIT_MS: '2500',
    // Enough for some sixty gasless transfers; masters lend the gas for the others.
    COIN_PRICES: '2026-11-22,tETH=1000',
    SETTLE_MICRO_USD_PER_DAY_MAX: '9000000',
    SANDBOX_SCREENING: 'true',
  })
  fleet = keepFleet(processes, env)
  caller = { apiKey: testKey, where: (index) => fleet.where(index) }
})
afterAll(async () => {
  await endEveryService()
  await node?.stop()
  await chain?.stop()
  await database?.drop()
})

/** Sent bytes that are lost, answers that are lost, answers that are late or out of order, and a failing node. */
const faults: readonly { readonly mode: FaultMode; readonly methods?: readonly string[] }[] = [
  { mode: { kind: 'pass' } },
  { mode: { kind: 'pass' } },
  { mode: { kind: 'pass' } },
  { mode: { kind: 'drop' }, methods: ['eth_sendRawTransaction'] },
  { mode: { kind: 'lose-answer' }, methods: ['eth_sendRawTransaction'] },
  { mode: { kind: 'delay', delayMs: 200 }, methods: ['eth_sendRawTransaction'] },
  { mode: { kind: 'delay', delayMs: 60 } },
  { mode: { kind: 'garbage' }, methods: ['eth_getTransactionReceipt'] },
  { mode: { kind: 'error500' } },
]

async function disturb(random: () => number, stopped: AbortSignal): Promise<void> {
  while (!stopped.aborted) {
    const fault = faults[Math.floor(random() * faults.length)]
    if (fault !== undefined) node.set(fault.mode, fault.methods)
    await delay(50 + random() * 150)
  }
  node.set('pass')
}

const Supported = z.object({ signers: z.record(z.string(), z.array(z.templateLiteral(['0x', z.string()]))) })

/** Funds the settler's gas for gasless transfers. */
async function fundSettler(): Promise<void> {
  const requested = { key: caller.apiKey, method: 'GET', path: '/facilitator/supported' }
  const { signers } = Supported.parse((await request(await caller.where(0), requested)).body)
  for (const settler of Object.values(signers).flat()) await fundNative(chain, settler, 10n ** 19n)
}

test(`kill -9 at random moments during ${transfers} transfers from 20 wallets, with a node that drops, delays and reorders: each is sent once or not at all`, {
  timeout: 900_000,
}, async () => {
  const random = mulberry32(seed)
  const begun = performance.now()
  await fleet.start()
  await fundSettler()
  const wallets = await someWallets(caller, chain, masters)
  const before = await holdingsOf(chain, wallets)
  const wishes = someTransfers(wallets, transfers)
  const calm = new AbortController()
  const disturbed = disturb(random, calm.signal)
  const load = startTransfers(caller, wishes, callers)
  for (let kill = 0; kill < kills; kill++) {
    const enough = Math.min(load.done() + 20 + Math.floor(random() * 40), transfers - 20)
    await expect.poll(load.done, { timeout: 180_000, interval: 10 }).toBeGreaterThanOrEqual(enough)
    await delay(random() * 150)
    await fleet.kill(Math.floor(random() * processes))
  }
  await load.ended
  calm.abort()
  await disturbed
  await expect.poll(() => countOpen(database.db), { timeout: 180_000, interval: 100 }).toBe(0)

  const totals = await expectTransfersToAgree({ db: database.db, chain, wallets, before }, wishes)
  const seconds = Math.round((performance.now() - begun) / 1_000)
  console.log(`seed ${seed}, ${kills} kills, ${seconds} s: ${JSON.stringify(totals)} ${JSON.stringify(load.counts)}`)
  expect(load.counts.lost, 'the kills met requests under way').toBeGreaterThan(0)
  expect(totals.gasless, 'some were signed by children and sent by the settler').toBeGreaterThan(0)
  for (const wish of wishes
    .filter(({ key, answer: response }) => key !== undefined && response !== undefined)
    .slice(0, 30)) {
    const again = await post(caller, wish, 0)
    expect([again.status, again.body.id]).toEqual([201, wish.answer?.id])
  }
  expect(await countOpen(database.db)).toBe(0)
  expect(await fleet.end('SIGTERM')).toEqual([0, 0])
})
