import { type DevChain, fundNative } from '@purser/devnet'
import type { Address, Hex } from '@purser/protocol'
import { zeroAddress } from '@purser/protocol'
import { createTestClient, createWalletClient, encodeFunctionData, http, parseAbi, publicActions } from 'viem'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import type { RouteStatus } from '../../src/partners/routing/port.ts'
import { sql } from '../../src/platform/db/db.ts'
import { aPartnerStage, bridgeOf, type Managed, type PartnerStage, stranger } from '../partner-stage.ts'
import type { Answer } from '../world.ts'

const multicall: Address = '0xcA11bde05977b3631167028862bE2a173976CA11'
/** The longest interval between two polls of a transfer. */
const lookMsMax = 60_000
const rawEach = 10n ** 16n

let stage: PartnerStage

beforeAll(async () => {
  stage = await aPartnerStage()
})
afterAll(() => stage?.stop())
beforeEach(() => stage.renew())

/** Mines one block in which contracts pay an account, so often by each transaction. Returns the hashes of the transactions. */
async function paidTogether(chain: DevChain, to: Address, times: readonly number[]): Promise<readonly Hex[]> {
  const node = createTestClient({ mode: 'anvil', transport: http(chain.rpcUrl) })
  const client = createWalletClient({ transport: http(chain.rpcUrl) }).extend(publicActions)
  const [account] = await client.getAddresses()
  if (account === undefined) throw new Error('no account')
  await node.setAutomine(false)
  const hashes: Hex[] = []
  for (const count of times) {
    const call = { target: to, allowFailure: false, value: rawEach, callData: '0x' } as const
    const abi = parseAbi([
      'struct Call { address target; bool allowFailure; uint256 value; bytes callData; }',
      'function aggregate3Value(Call[] calls) payable',
    ])
    const data = encodeFunctionData({ abi, args: [Array.from({ length: count }, () => call)] })
    const value = rawEach * BigInt(count)
    hashes.push(await client.sendTransaction({ account, chain: null, to: multicall, value, data, gas: 300_000n }))
  }
  await node.mine({ blocks: 1 })
  await node.setAutomine(true)
  const receipts = await Promise.all(hashes.map((hash) => client.waitForTransactionReceipt({ hash })))
  expect(new Set(receipts.map(({ blockNumber, status }) => `${blockNumber} ${status}`)).size).toBe(1)
  return hashes
}

/** How often the partner was queried for each of its references. */
const polls = new Map<string, number>()

async function referenceOf({ body }: Answer): Promise<string> {
  const row = await stage.world.database.db.one(
    z.object({ reference: z.string() }),
    sql`select partner_reference as reference from transfers where id = ${String(body.id)}`,
  )
  return row.reference
}

/** The partner's answer for each of these transfers. */
async function says(sent: readonly Answer[], statuses: readonly RouteStatus[]): Promise<void> {
  const references = await Promise.all(sent.map(referenceOf))
  stage.conduct = {
    status: async (_, reference) => {
      polls.set(reference, (polls.get(reference) ?? 0) + 1)
      return statuses[references.indexOf(reference)] ?? { state: 'pending', partnerStatus: 'waits' }
    },
  }
}

async function listOpen(sent: readonly Answer[]): Promise<readonly string[]> {
  stage.clock.forward(lookMsMax)
  const all = await Promise.all(sent.map(async (one) => ({ one, status: (await stage.get(one)).status })))
  return Promise.all(all.filter(({ status }) => status === 'pending').map(({ one }) => referenceOf(one)))
}

const received = { chainId: 11_155_111, token: zeroAddress, rawAmount: rawEach, isOther: true }
const deliveredBy = (destinationTxHash: Hex): RouteStatus => ({
  ...{ state: 'completed', partnerStatus: 'delivered', received, destinationTxHash },
})
const refundedBy = (refundTxHash: Hex): RouteStatus => ({
  ...{ state: 'failed', partnerStatus: 'refunded', reason: 'The destination could not be paid.', refund: 'done' },
  refundTxHash,
})

/** Waits until so many have ended, and the partner was queried three more times for each of the others. */
async function untilEnded(sent: readonly Answer[], count: number): Promise<void> {
  await expect.poll(() => listOpen(sent), { interval: 500 }).toHaveLength(sent.length - count)
  const before = new Map(polls)
  const isPolledAgain = async () =>
    (await listOpen(sent)).every((reference) => (polls.get(reference) ?? 0) > (before.get(reference) ?? 0) + 2)
  await expect.poll(isPolledAgain, { interval: 500 }).toBe(true)
  expect(await listOpen(sent)).toHaveLength(sent.length - count)
}

async function sendAll(count: number, body: () => Record<string, unknown>): Promise<readonly Answer[]> {
  stage.conduct = { status: async () => ({ state: 'pending', partnerStatus: 'waits' }) }
  const sent: Answer[] = []
  for (let number = 0; number < count; number++) sent.push(await stage.send(body()))
  expect(sent.map(({ status }) => status)).toEqual(sent.map(() => 201))
  return sent
}

test.each<[string, readonly number[], number]>([
  ['one arrival of coin', [1, 0], 1],
  ['two arrivals of coin by two transactions', [1, 1, 0], 2],
  ['two arrivals of coin by one transaction', [2, 0], 2],
])('%s in a block proves no more deliveries', async (_, times, count) => {
  const [master, toAddress] = [await stage.aMaster(200_000_000n), stranger()]
  const sent = await sendAll(3, () => bridgeOf(master, { toAddress }))
  const hashes = await paidTogether(stage.ethereum, toAddress, times)
  const named = [hashes[0], hashes.at(-2), hashes.at(-1)] as readonly Hex[]
  await says(sent, named.map(deliveredBy))
  await untilEnded(sent, count)
})

async function aCoinMaster(): Promise<Managed> {
  const master = await stage.aMaster()
  await fundNative(stage.base, master.address, 10n ** 18n)
  return master
}

test.each<[string, readonly number[], number]>([
  ['one arrival of coin', [1, 0], 1],
  ['two arrivals of coin by two transactions', [1, 1, 0], 2],
  ['two arrivals of coin by one transaction', [2, 0], 2],
])('%s in a block proves no more refunds', async (_, times, count) => {
  const master = await aCoinMaster()
  const bridged = { fromToken: 'ETH', toToken: 'ETH', amount: '0.01' }
  const sent = await sendAll(3, () => bridgeOf(master, bridged))
  const hashes = await paidTogether(stage.base, master.address, times)
  const named = [hashes[0], hashes.at(-2), hashes.at(-1)] as readonly Hex[]
  await says(sent, named.map(refundedBy))
  await untilEnded(sent, count)
})
