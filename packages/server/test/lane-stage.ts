import { type DevChain, fundNative } from '@purser/devnet'
import { type Address, type Network, networkByName } from '@purser/protocol'
import { z } from 'zod'
import { createChains } from '../src/chain/chains.ts'
import { followLanes } from '../src/chain/lanes/follow.ts'
import { createLanes, scopeOf, sharesOf } from '../src/chain/lanes/lanes.ts'
import { createOverdueLog } from '../src/chain/lanes/overdue.ts'
import { resumeLanes } from '../src/chain/lanes/resume.ts'
import { createSearches } from '../src/chain/lanes/searches.ts'
import { type LaneParts, sendLanes } from '../src/chain/lanes/send.ts'
import type { LaneKey } from '../src/chain/lanes/store.ts'
import type { ChainTransactionId, LaneHandler, LaneTransaction, MinedTransaction, Signer } from '../src/chain/port.ts'
import { createSignatures } from '../src/chain/signatures/signatures.ts'
import type { WalletSigner } from '../src/custody/signer.ts'
import { createAccountSigner, createSigner } from '../src/custody/signer.ts'
import { type Clock, systemClock } from '../src/platform/clock.ts'
import { type Db, sql, type Tx } from '../src/platform/db/db.ts'
import { insertShares, type LeaseSet, takeLeases } from '../src/platform/leases/store.ts'
import { createLog, type Log } from '../src/platform/log.ts'
import { createMetrics } from '../src/platform/metrics.ts'
import { createOutbound, type Outbound } from '../src/platform/outbound.ts'
import { systemRandom } from '../src/platform/random.ts'
import { createProbe } from '../src/platform/work/due-work.ts'
import { steadyWitness } from './steady-witness.ts'

export const purpose = 'stage.pay'
/**
 * The longest time a lane runs: where anvil loses one of several transactions, a replacement follows after some twelve
 * seconds.
 */
export const laneMsMax = 120_000

export interface StageOptions {
  readonly db: Db
  readonly dev: DevChain
  /** Other addresses of the node, such as a fault proxy's. */
  readonly rpcUrls?: readonly string[]
  readonly confirmationDepth?: number
  readonly clock?: Clock
  readonly log?: Log
  readonly funded?: boolean
  readonly rpcTimeoutMs?: number
  readonly leaseMs?: number
}

/**
 * One sender with its lane on a local chain. Each planned transaction pays 1 wei to its own recipient, so duplicates
 * show.
 */
export async function aLane(options: StageOptions) {
  const known = networkByName(options.dev.network)
  if (known === undefined) throw new Error('no such network')
  const network: Network = { ...known, confirmationDepth: options.confirmationDepth ?? 1 }
  const outbound = createOutbound()
  const chains = createChains({
    outbound,
    clock: options.clock ?? systemClock,
    networks: [network],
    rpcUrls: { [network.name]: options.rpcUrls ?? [options.dev.rpcUrl] },
    rpcTimeoutMs: options.rpcTimeoutMs ?? 4_000,
  })
  const signer = await aSigner()
  if (options.funded !== false) await fundNative(options.dev, signer.address, 10n ** 20n)
  const { clock = systemClock, log = createLog({ level: 'silent' }) } = options
  const deps = {
    db: options.db,
    probe: createProbe({ db: options.db, log }),
    clock,
    random: systemRandom,
    log,
    metrics: createMetrics(),
    witness: steadyWitness,
  }
  const signerOf = async (account: Address) => (account === signer.address ? signer : undefined)
  const lanes = createLanes({ deps, chains, signerOf, leaseMs: options.leaseMs })
  const handler = await recordingHandler(options.db)
  const parts: LaneParts = {
    deps,
    chain: chains.on(network),
    signerOf: () => signer,
    handlers: new Map([[purpose, handler]]),
    leased: await takeAllLeases(options.db, network.name),
    ...laneMemory(deps),
  }
  const lane = { network: network.name, sender: signer.address }
  return { network, outbound, chains, signer, deps, lanes, handler, parts, lane, dev: options.dev, db: options.db }
}

export type Stage = Awaited<ReturnType<typeof aLane>>

/** The memory of a process that drives lanes. */
export function laneMemory(deps: LaneParts['deps']): Pick<LaneParts, 'usedSince' | 'searches' | 'overdue'> {
  return { usedSince: new Map(), searches: createSearches(), overdue: createOverdueLog(deps) }
}

/** Leases all lanes of a network for a test that runs them step by step, also from another process. */
export async function takeAllLeases(db: Db, network: string, leaseMs = 600_000): Promise<LeaseSet> {
  const shares = sharesOf(network)
  const ownerToken = Buffer.from(systemRandom.bytes(16)).toString('hex')
  await insertShares(db, shares)
  await freeLeases(db)
  const leases = await takeLeases(db, shares, { ownerToken, leaseMs })
  return { scope: scopeOf(network), ownerToken, leaseMs, leases }
}

/** Releases all leases. */
export async function freeLeases(db: Db): Promise<void> {
  await db.run(sql`update leases set until = '-infinity'`)
}

/** Lets the service itself run the lanes of a stage. */
export async function startLanes({ db, lanes, handler }: Pick<Stage, 'db' | 'lanes' | 'handler'>): Promise<void> {
  await freeLeases(db)
  lanes.start([handler])
}

/** One pass over a leased and resumed lane: sends, then follows. Returns how many transactions were still open before the searches that it began. */
export async function passLane(parts: LaneParts, { sender }: LaneKey): Promise<number> {
  await sendLanes(parts, [sender])
  const open = await followLanes(parts, [sender])
  await parts.searches.settled()
  return open
}

export async function aSigner(): Promise<Signer> {
  const privateKey = systemRandom.bytes(32)
  return createSigner(async () => Uint8Array.from(privateKey), await createSignatures())
}

/** An account that can also sign Tempo's own transactions, like a managed wallet. */
export async function anAccount(): Promise<WalletSigner> {
  const signatures = await createSignatures()
  const privateKey = systemRandom.bytes(32)
  const { address } = await createSigner(async () => Uint8Array.from(privateKey), signatures)
  return createAccountSigner({ address, signDigest: async (digest) => signatures.sign(digest, privateKey) }, signatures)
}

export interface Payment {
  readonly id: ChainTransactionId
  readonly to: Address
}

export async function planPayment(stage: Pick<Stage, 'lanes' | 'network' | 'db' | 'lane'>): Promise<Payment> {
  const to: Address = `0x${Buffer.from(systemRandom.bytes(20)).toString('hex')}`
  await stage.lanes.prepare(stage.network, stage.lane.sender)
  const id = await stage.db.tx(planWith(stage, to))
  return { id, to }
}

export function planWith(
  { lanes, network, lane }: Pick<Stage, 'lanes' | 'network' | 'lane'>,
  to: Address,
  gasLimit = 30_000n,
) {
  return (tx: Tx) => lanes.plan(tx, lane.sender, { network, to, data: '0x', value: 1n, gasLimit, purpose })
}

/** Does what a new process does: resumes the lane, then runs passes until it is empty or `until` returns true. */
export async function runLane(
  stage: Pick<Stage, 'parts' | 'lane'>,
  until: () => Promise<boolean> = async () => false,
): Promise<void> {
  await resumeLanes(stage.parts, [stage.lane.sender])
  const end = performance.now() + laneMsMax
  while (performance.now() < end) {
    if ((await passLane(stage.parts, stage.lane)) === 0 || (await until())) return
  }
  throw new Error('the lane did not become empty')
}

/** Handlers record their effects as rows in the lane's own transactions, so that a repeated effect would show. */
async function recordingHandler(db: Db): Promise<LaneHandler> {
  await db.run(sql`create table if not exists effects (number bigserial, transaction_id text, step text, hash text)`)
  const record = (step: string) => async (tx: Tx, transactions: readonly LaneTransaction[]) => {
    for (const { id, hash } of transactions)
      await tx.run(sql`insert into effects (transaction_id, step, hash) values (${id}, ${step}, ${hash})`)
  }
  const recordMined = (step: string) => (tx: Tx, mined: readonly MinedTransaction[]) =>
    record(step)(
      tx,
      mined.map(({ transaction }) => transaction),
    )
  return {
    purpose,
    onSent: record('sent'),
    onMined: recordMined('mined'),
    onReplaced: record('replaced'),
    onFinal: recordMined('final'),
  }
}

export async function effectsOf(db: Db, id: ChainTransactionId): Promise<string[]> {
  const rows = await db.many(
    z.object({ step: z.string() }),
    sql`select step from effects where transaction_id = ${id} order by number`,
  )
  return rows.map(({ step }) => step)
}

export async function statusOf(db: Db, id: ChainTransactionId): Promise<string> {
  return (await db.one(z.object({ status: z.string() }), sql`select status from chain_transactions where id = ${id}`))
    .status
}

/** The steps that a handler sees for a transaction with these signed forms. */
export function stepsOf(attempts: readonly unknown[]): string[] {
  return [...attempts.map(() => 'sent'), 'mined', 'final']
}

export async function attemptsOf(db: Db, id: ChainTransactionId) {
  const Attempt = z.object({ hash: z.string(), maxFee: z.string(), priorityFee: z.string() })
  return db.many(
    Attempt,
    sql`select hash, max_fee, priority_fee from transaction_attempts where transaction_id = ${id} order by sequence`,
  )
}

/** The account's balance in wei, read from the chain. */
export async function weiOf(stage: Pick<Stage, 'outbound' | 'dev'>, account: Address): Promise<bigint> {
  return BigInt(String(await rpc(stage.outbound, stage.dev.rpcUrl, 'eth_getBalance', [account, 'latest'])))
}

export async function rpc(
  outbound: Outbound,
  url: string,
  method: string,
  params: readonly unknown[] = [],
): Promise<unknown> {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
  const answer = z
    .object({ result: z.unknown(), error: z.unknown().optional() })
    .parse(await outbound.postJson(url, body, { timeoutMs: 10_000, bytesMax: 1_000_000 }))
  if (answer.error !== undefined) throw new Error(`${method}: ${JSON.stringify(answer.error)}`)
  return answer.result
}

/** A clock that moves only when a test moves it. */
export function aStillClock(): Clock & { forward(ms: number): void } {
  let now = Date.now()
  return {
    now: () => new Date(now),
    forward(ms) {
      now += ms
    },
  }
}
