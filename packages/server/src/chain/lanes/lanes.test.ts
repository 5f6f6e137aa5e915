import { type DevChain, fundNative, startChain, startFaultProxy } from '@purser/devnet'
import type { Address } from '@purser/protocol'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { freshDatabase, type TestDatabase } from '../../../test/database.ts'
import {
  aLane,
  aSigner,
  effectsOf,
  freeLeases,
  purpose,
  rpc,
  type Stage,
  statusOf,
  weiOf,
} from '../../../test/lane-stage.ts'
import { systemRandom } from '../../platform/random.ts'
import type { ChainTransactionId, Lanes, LaneTransaction, Signer } from '../port.ts'
import { createLanes } from './lanes.ts'
import { listUnsent } from './store.ts'

let database: TestDatabase
let dev: DevChain
const cleanups: (() => Promise<unknown>)[] = []

beforeAll(async () => {
  database = await freshDatabase({ connectionsMax: 20 })
  dev = await startChain({ network: 'base-sepolia' })
})
afterEach(async () => {
  for (const clean of cleanups.splice(0).reverse()) await clean()
})
afterAll(async () => {
  await dev?.stop()
  await database?.drop()
})

interface Account {
  readonly address: Address
  readonly signer: Signer
}

interface Sent {
  readonly id: ChainTransactionId
  readonly from: Address
  readonly to: Address
}

async function aStage(rpcUrls?: readonly string[]): Promise<Stage> {
  const stage = await aLane({ db: database.db, dev, ...(rpcUrls !== undefined && { rpcUrls }) })
  cleanups.push(() => stage.outbound.close())
  await freeLeases(database.db)
  return stage
}

async function someAccounts(count: number, options: { readonly funded: boolean } = { funded: true }) {
  const signers = await Promise.all(Array.from({ length: count }, aSigner))
  if (options.funded) for (const { address } of signers) await fundNative(dev, address, 10n ** 18n)
  return signers.map((signer): Account => ({ address: signer.address, signer }))
}

function lanesOf(stage: Stage, accounts: readonly Account[]): Lanes {
  const lanes = createLanes({
    deps: stage.deps,
    chains: stage.chains,
    signerOf: async (account) => accounts.find(({ address }) => address === account)?.signer,
  })
  cleanups.push(() => lanes.stop())
  return lanes
}

async function plan(stage: Stage, lanes: Lanes, from: Address): Promise<Sent> {
  const to: Address = `0x${Buffer.from(systemRandom.bytes(20)).toString('hex')}`
  await lanes.prepare(stage.network, from)
  const transaction = { network: stage.network, to, data: '0x', value: 1n, gasLimit: 30_000n, purpose } as const
  const id = await stage.db.tx((tx) => lanes.plan(tx, from, transaction))
  lanes.notify(stage.network)
  return { id, from, to }
}

async function areFinal(sent: readonly Sent[]): Promise<boolean> {
  const statuses = await Promise.all(sent.map(({ id }) => statusOf(database.db, id)))
  return statuses.every((status) => status === 'final')
}

async function expectOnce(stage: Stage, sent: readonly Sent[]): Promise<void> {
  expect(await Promise.all(sent.map(({ to }) => weiOf(stage, to)))).toEqual(sent.map(() => 1n))
  for (const { id } of sent) {
    expect((await effectsOf(database.db, id)).filter((step) => step === 'final')).toHaveLength(1)
  }
  for (const from of new Set(sent.map((one) => one.from))) {
    const count = BigInt(String(await rpc(stage.outbound, dev.rpcUrl, 'eth_getTransactionCount', [from, 'latest'])))
    expect(count, 'every nonce is of one transaction').toBe(BigInt(sent.filter((one) => one.from === from).length))
  }
}

test('transactions that twenty accounts send at once each arrive once, in each account’s order', async () => {
  const stage = await aStage()
  const accounts = await someAccounts(20)
  const lanes = lanesOf(stage, accounts)
  lanes.start([stage.handler])
  const sent = await Promise.all(
    accounts.flatMap(({ address }) => Array.from({ length: 5 }, () => plan(stage, lanes, address))),
  )
  await expect.poll(() => areFinal(sent), { timeout: 90_000 }).toBe(true)
  await expectOnce(stage, sent)
})

test('two processes drive the lanes, the active one stops in the middle, and a node loses answers: all arrive once', async () => {
  const proxy = await startFaultProxy(dev.rpcUrl)
  cleanups.push(() => proxy.stop())
  const stage = await aStage([proxy.url])
  const accounts = await someAccounts(6)
  const [first, second] = [lanesOf(stage, accounts), lanesOf(stage, accounts)]
  first.start([stage.handler])
  const sent: Sent[] = []
  for (const mode of ['lose-answer', 'pass', 'drop', 'pass'] as const) {
    proxy.set(mode, ['eth_sendRawTransaction'])
    for (const { address } of accounts) sent.push(await plan(stage, first, address))
    if (mode === 'drop') {
      second.start([stage.handler])
      await first.stop()
    }
  }
  await expect.poll(() => areFinal(sent), { timeout: 90_000 }).toBe(true)
  await expectOnce(stage, sent)
})

test('an account without gas and one without a signer do not delay others; with gas the first continues', async () => {
  const stage = await aStage()
  const [poor] = await someAccounts(1, { funded: false })
  const [rich] = await someAccounts(1)
  const [strange] = await someAccounts(1)
  if (poor === undefined || rich === undefined || strange === undefined) throw new Error('no accounts')
  const lanes = lanesOf(stage, [poor, rich])
  lanes.start([stage.handler])
  const unsigned = await plan(stage, lanes, strange.address)
  const waiting = await plan(stage, lanes, poor.address)
  const sent = await plan(stage, lanes, rich.address)
  await expect.poll(() => areFinal([sent])).toBe(true)
  expect(await statusOf(database.db, unsigned.id)).toBe('planned')
  expect(await areFinal([waiting])).toBe(false)
  await fundNative(dev, poor.address, 10n ** 18n)
  await expect.poll(() => areFinal([waiting])).toBe(true)
  await expectOnce(stage, [sent, waiting])
})

test('an account whose signer fails and accounts whose handler fails do not delay others', async () => {
  const stage = await aStage()
  const [healthy, unsigned, refusing, undecided] = await someAccounts(4)
  if (healthy === undefined || unsigned === undefined || refusing === undefined || undecided === undefined)
    throw new Error('no accounts')
  let isSick = true
  const sick: Signer = {
    ...unsigned.signer,
    signTransaction: (fields) =>
      isSick ? Promise.reject(new Error('the key service is unavailable')) : unsigned.signer.signTransaction(fields),
  }
  const lanes = lanesOf(stage, [healthy, { ...unsigned, signer: sick }, refusing, undecided])
  const stalled = await Promise.all([unsigned, refusing, undecided].map(({ address }) => plan(stage, lanes, address)))
  const [, refused, open] = stalled
  const sent = [await plan(stage, lanes, healthy.address), await plan(stage, lanes, healthy.address)]
  const refuse = (transactions: readonly LaneTransaction[], of: Sent | undefined) => {
    if (isSick && transactions.some(({ id }) => id === of?.id)) throw new Error('the handler cannot store this')
  }
  lanes.start([
    {
      ...stage.handler,
      async onSent(tx, transactions) {
        refuse(transactions, refused)
        await stage.handler.onSent?.(tx, transactions)
      },
      async onMined(tx, mined) {
        refuse(
          mined.map(({ transaction }) => transaction),
          open,
        )
        await stage.handler.onMined?.(tx, mined)
      },
    },
  ])
  await expect.poll(() => areFinal(sent)).toBe(true)
  await expect
    .poll(() => Promise.all(stalled.map(({ id }) => statusOf(database.db, id))))
    .toEqual(['planned', 'planned', 'sent'])
  isSick = false
  await expect.poll(() => areFinal(stalled)).toBe(true)
  await expectOnce(stage, [...sent, ...stalled])
})

test('an account with many transactions does not delay others, and its own are sent in order', async () => {
  const stage = await aStage()
  const [busy, ...others] = await someAccounts(6, { funded: false })
  if (busy === undefined) throw new Error('no account')
  const lanes = lanesOf(stage, [])
  for (let count = 0; count < 40; count++) await plan(stage, lanes, busy.address)
  for (const { address } of others) await plan(stage, lanes, address)
  const senders = [busy, ...others].map(({ address }) => address)
  const listed = (await listUnsent(database.db, stage.network.name, senders, 10)).map(({ transaction }) => transaction)
  expect(new Set(listed.map(({ sender }) => sender))).toEqual(new Set(senders))
  expect(listed.filter(({ sender }) => sender === busy.address).map(({ nonce }) => nonce)).toEqual([0n, 1n, 2n, 3n, 4n])
})
