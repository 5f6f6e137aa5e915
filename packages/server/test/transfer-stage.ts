import { type DevChain, fundNative, fundToken, startChain } from '@purser/devnet'
import { type Address, type NetworkName, networkByName } from '@purser/protocol'
import { createTestClient, http, publicActions, walletActions } from 'viem'
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts'
import { expect } from 'vitest'
import { z } from 'zod'
import type { Config } from '../src/config.ts'
import { sql } from '../src/platform/db/db.ts'
import { startLyingNode } from './lying-node.ts'
import { createFakeScreening } from './screening-double.ts'
import { ShiftedClock } from './webhooks/clock.ts'
import { type Answer, aWorld, request, type World } from './world.ts'

export interface Managed {
  readonly id: string
  readonly address: Address
}

/** The longest time that anything is waited for. */
export const patient = { timeout: 60_000 }

/** Options of a poll that itself mines a block or moves the clock: each read brings the end closer, so the reads do not become rarer. */
export const driving = { timeout: 60_000, interval: 50 }

/** One deployment on one local chain, behind a node that a test may make lie, with a clock that a test moves. */
export async function aTransferStage(
  options: {
    readonly network?: NetworkName
    readonly config?: Partial<Config>
    readonly second?: boolean
    /** The addresses of the nodes. Default: the node that may lie, and with `second` the one that does not. */
    readonly nodes?: (at: { readonly lying: string; readonly honest: string }) => readonly string[]
    readonly takesL1Fee?: boolean
    /** How many blocks deeper than the newest a block is safe. Default: 1. */
    readonly epochBlocks?: number
  } = {},
) {
  const name = options.network ?? 'base'
  const dev = await startChain({
    network: name,
    takesL1Fee: options.takesL1Fee ?? false,
    epochBlocks: options.epochBlocks ?? 1,
  })
  const chain = createTestClient({ mode: 'anvil', transport: http(dev.rpcUrl) })
    .extend(publicActions)
    .extend(walletActions)
  // At this base fee, in wei, empty blocks lower it no further: a quote and the transfer after it cost the same.
  await chain.setNextBlockBaseFeePerGas({ baseFeePerGas: 7n })
  await chain.mine({ blocks: 1 })
  const node = await startLyingNode(dev.rpcUrl)
  const clock = new ShiftedClock()
  const isTestNetwork = networkByName(name)?.isTestnet === true
  const world = await aWorld({
    chains: [dev],
    rpcUrls: {
      [name]: options.nodes?.({ lying: node.url, honest: dev.rpcUrl }) ?? [
        node.url,
        ...(options.second === true ? [dev.rpcUrl] : []),
      ],
    },
    config: { rpcTimeoutMs: 3_000, transferWaitMs: 20_000, ...options.config },
    // With live keys a stale list blocks transfers, and the bundled list is stale by design.
    boot: { clock, ...(isTestNetwork ? {} : { screening: createFakeScreening(() => clock.now()) }) },
  })
  const hasty = await world.another({ role: 'api', transferWaitMs: 0 })
  const org = await world.organisation()
  const key = isTestNetwork ? org.testKey : org.liveKey
  return {
    dev,
    node,
    clock,
    world,
    hasty,
    org,
    key,
    chain,
    async stop() {
      await world.stop()
      await node.stop()
      await dev.stop()
    },
  }
}

export type TransferStage = Awaited<ReturnType<typeof aTransferStage>>

export const masters = '/wallet-infra/master-wallets'

export async function aMaster(
  stage: Pick<TransferStage, 'world' | 'dev' | 'key'>,
  funds: { readonly wei?: bigint; readonly usdc?: bigint } = {},
): Promise<Managed> {
  const { world, dev, key } = stage
  const { body } = await world.call(key, 'POST', masters, { chain: 'base', supportedTokens: ['USDC'] })
  const master = { id: String(body.id), address: body.address as Address }
  await fundNative(dev, master.address, funds.wei ?? 10n ** 18n)
  if (funds.usdc !== 0n) await fundToken(dev, 'USDC', master.address, funds.usdc ?? 100_000_000n)
  await untilBooked(world, dev)
  return master
}

function nodeOf({ rpcUrl }: Pick<DevChain, 'rpcUrl'>) {
  return createTestClient({ mode: 'anvil', transport: http(rpcUrl) }).extend(publicActions)
}

/**
 * Mines the confirmations of deposits on the network until the watcher has booked and confirmed everything. A transaction
 * that reaches a block only while this waits gets its confirmations too.
 */
export async function untilBooked({ database }: Pick<World, 'database'>, dev: DevChain): Promise<void> {
  const depth = networkByName(dev.network)?.confirmationDepth ?? 1
  const node = nodeOf(dev)
  const mine = async () => {
    // Fixes the base fee, so that the cost of a transfer is constant.
    const { baseFeePerGas } = await node.getBlock()
    if (baseFeePerGas !== null) await node.setNextBlockBaseFeePerGas({ baseFeePerGas })
    await node.mine({ blocks: 1 })
  }
  const mineDepth = async () => {
    for (let mined = 0; mined < depth; mined++) await mine()
  }
  await mineDepth()
  const isBooked = async () => {
    const head = await node.getBlockNumber()
    const { isScanned, isPending } = await database.db.one(
      z.object({ isScanned: z.boolean(), isPending: z.boolean() }),
      sql`
        select exists (select from deposit_cursors where network = ${dev.network} and scanned >= ${head}) as is_scanned,
          exists (select from wallet_transactions where network = ${dev.network} and status = 'pending') as is_pending`,
    )
    if (isScanned && isPending) await mineDepth()
    return isScanned && !isPending
  }
  await expect.poll(isBooked, patient).toBe(true)
}

export async function aChild({ world, key }: Pick<TransferStage, 'world' | 'key'>, of: Managed): Promise<Managed> {
  const { body } = await world.call(key, 'POST', `${masters}/${of.id}/child-addresses`, {})
  return { id: String(body.id), address: body.address as Address }
}

export function stranger(): Address {
  return privateKeyToAddress(generatePrivateKey())
}

export function bodyFrom(from: Managed, changes: Record<string, unknown> = {}) {
  const usual = { fromToken: 'USDC', toChain: 'base', toToken: 'USDC', amount: '2.5', toAddress: stranger() }
  return { fromWalletId: from.id, ...usual, ...changes }
}

export const path = '/wallet-infra/transfer'

/** Requests a transfer and waits for its block. */
export function send({ world, key }: TransferStage, body: unknown): Promise<Answer> {
  return world.call(key, 'POST', path, body)
}

/** Requests a transfer from a process that does not wait; returns its id. */
export async function begin({ hasty, key }: TransferStage, body: unknown): Promise<string> {
  const sent = await request(hasty.base, { key, method: 'POST', path, body })
  expect([sent.status, sent.body.status, sent.body.type]).toEqual([201, 'pending', undefined])
  return String(sent.body.id)
}

export async function transferOf({ world, key }: TransferStage, id: string): Promise<Answer['body']> {
  return (await world.call(key, 'GET', `/wallet-infra/transfers/${id}`)).body
}

/** The events of a transfer, oldest first. */
export async function eventsOf({ world }: { readonly world: Pick<World, 'database'> }, id: string): Promise<string[]> {
  const rows = await world.database.db.many(
    z.object({ type: z.string() }),
    sql`select type from events where payload ->> 'transactionId' = ${id} order by id`,
  )
  return rows.map(({ type }) => type)
}

const Attempt = z.object({
  hash: z.templateLiteral(['0x', z.string()]),
  raw: z.instanceof(Uint8Array),
  nonce: z.bigint(),
  maxFee: z.string().transform(BigInt),
  priorityFee: z.string().transform(BigInt),
})
export type Attempt = z.output<typeof Attempt>

/** Everything that was ever signed for a transfer, in order. */
export function attemptsOf({ world }: TransferStage, id: string): Promise<Attempt[]> {
  return world.database.db.many(
    Attempt,
    sql`
    select a.hash, a.raw, t.nonce, a.max_fee::text, a.priority_fee::text from transfer_steps s
    join chain_transactions t on t.id = s.transaction_id join transaction_attempts a on a.transaction_id = t.id
    where s.transfer_id = ${id} order by s.position, a.sequence`,
  )
}

/** Waits until the node has received this many signed forms of a transfer. */
export async function untilSent(stage: TransferStage, id: string, attempts = 1): Promise<readonly Attempt[]> {
  const sent = async (): Promise<boolean> => {
    const last = (await attemptsOf(stage, id))[attempts - 1]
    return last !== undefined && (await isKnown(stage, last.hash))
  }
  await expect.poll(sent, patient).toBe(true)
  return attemptsOf(stage, id)
}

/** Whether the real node has the transaction, in a block or pending. */
export async function isKnown({ chain }: TransferStage, hash: `0x${string}`): Promise<boolean> {
  const known = await chain.getTransaction({ hash }).catch(() => undefined)
  return known !== undefined
}

/**
 * How many transactions of an account the node has, in a block or pending. The row's own `last_broadcast_at` is written
 * before the bytes leave, so a test that mines on it may mine too early.
 */
export async function countAtNode(
  { database }: Pick<World, 'database'>,
  { rpcUrl }: Pick<DevChain, 'rpcUrl'>,
  sender: Address,
): Promise<number> {
  const node = nodeOf({ rpcUrl })
  const rows = await database.db.many(
    z.object({ id: z.string(), hash: z.string().transform((hash) => hash as `0x${string}`) }),
    sql`
    select t.id, a.hash from chain_transactions t join transaction_attempts a on a.transaction_id = t.id
    where t.sender = ${sender}`,
  )
  const known = await Promise.all(
    rows.map(async ({ id, hash }) => ((await node.getTransaction({ hash }).catch(() => undefined)) ? [id] : [])),
  )
  return new Set(known.flat()).size
}

/** Whether the transfer has finally ended. */
export async function hasEnded({ world }: Pick<TransferStage, 'world'>, id: string): Promise<boolean> {
  const { ended } = await world.database.db.one(
    z.object({ ended: z.boolean() }),
    sql`select ended_at is not null as ended from transfers where id = ${id}`,
  )
  return ended
}

/** Mines until the transfer has finally ended. */
export async function mineUntilEnded(stage: TransferStage, id: string): Promise<Answer['body']> {
  const ended = async (): Promise<boolean> => {
    await stage.chain.mine({ blocks: 1 })
    return hasEnded(stage, id)
  }
  await expect.poll(ended, driving).toBe(true)
  return transferOf(stage, id)
}

/** The amount that a wallet's policy counts as spent, in whole tokens as 1e-18, without what was released. */
export async function reservedBy({ world }: TransferStage, master: Managed): Promise<bigint> {
  const { raw } = await world.database.db.one(
    z.object({ raw: z.string().transform(BigInt) }),
    sql`
    select coalesce(sum(atto_amount), 0)::text as raw from policy_reservations
    where master_wallet_id = ${master.id} and released_at is null and operation <> 'gas'`,
  )
  return raw
}
