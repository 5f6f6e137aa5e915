import type { LaneHandler, LaneTransaction, MinedTransaction, Receipt } from '../../chain/port.ts'
import type { Tx } from '../../platform/db/db.ts'
import { inLockOrder } from '../../platform/db/lock-order.ts'
import { usedGasIn } from './forms/form.ts'
import { gasOf, movedIn } from './forms/index.ts'
import { lockSubjects, purposeOf, type RelayerParts } from './parts.ts'
import type { Relay, RelayPurpose } from './port.ts'
import { relayPurpose } from './port.ts'
import { type CarriedRow, listCarried, lockCarried, markLeft, markSettled } from './store.ts'

/** Handles the transactions that carry relays, inside the database transaction that marks the step. */
export function relayHandler(parts: Parts): LaneHandler {
  const onFinal = (tx: Tx, mined: readonly MinedTransaction[]) => finish(parts, tx, mined)
  return {
    purpose: relayPurpose,
    onSent: (tx, transactions) => reportSent(parts, tx, transactions),
    onMined: (tx, mined) => reportMined(parts, tx, mined),
    onReorganized: (tx, transactions) => reportReorganized(parts, tx, idsOf(transactions)),
    onReplaced: (tx, transactions) => sendAnew(parts, tx, transactions),
    onFinal,
    onMinedAndFinal: onFinal,
  }
}

/**
 * The number of attempts that is stored for a relay that used more than its gas grant. It is above the maximum, so that
 * the relay is not sent again.
 */
const attemptsAfterGasExceeded = 1_000

type Parts = Pick<RelayerParts, 'purposes'>
type Carried = readonly CarriedRow[]

async function reportSent({ purposes }: Parts, tx: Tx, transactions: readonly LaneTransaction[]) {
  const interested = [...purposes.values()].filter(({ onSent }) => onSent !== undefined)
  const carried = await listCarried(tx, idsOf(transactions), namesOf(interested))
  const hashes = new Map(transactions.map(({ id, hash }) => [id, hash]))
  for (const [purpose, own] of byPurpose(interested, carried)) {
    await purpose.onSent?.(tx, withHashes(own, hashes))
  }
}

async function reportMined({ purposes }: Parts, tx: Tx, mined: readonly MinedTransaction[]) {
  const interested = [...purposes.values()].filter(
    ({ onIncluded, onLeft }) => onIncluded !== undefined || onLeft !== undefined,
  )
  const carried = await listCarried(tx, idsOf(mined.map(({ transaction }) => transaction)), namesOf(interested))
  const { moved, left } = splitByOutcome(carried, mined)
  const hashes = new Map(mined.map(({ transaction: { id, hash } }) => [id, hash]))
  for (const [purpose, own] of byPurpose(interested, carried)) {
    const [ownMoved, ownLeft] = [moved.filter((one) => own.includes(one)), left.filter((one) => own.includes(one))]
    if (ownLeft.length > 0) await purpose.onLeft?.(tx, ownLeft)
    if (ownMoved.length > 0) await purpose.onIncluded?.(tx, withHashes(ownMoved, hashes))
  }
}

/** Handles transactions whose block was reorganized away. Their relays stay included: the same bytes may be mined again. */
async function reportReorganized({ purposes }: Parts, tx: Tx, transactionIds: readonly `ctx_${string}`[]) {
  const interested = [...purposes.values()].filter(({ onReorganized }) => onReorganized !== undefined)
  const carried = await listCarried(tx, transactionIds, namesOf(interested))
  for (const [purpose, own] of byPurpose(interested, carried)) {
    await purpose.onReorganized?.(tx, own)
  }
}

/** Handles transactions that can never be mined: their relays wait again, once the chain has been read. */
async function sendAnew({ purposes }: Parts, tx: Tx, transactions: readonly LaneTransaction[]) {
  const carried = await lockCarried(tx, idsOf(transactions), [...purposes.keys()])
  await markLeft(tx, carried)
  for (const [purpose, own] of byPurpose([...purposes.values()], carried)) await purpose.onLeft?.(tx, own)
}

async function finish({ purposes }: Parts, tx: Tx, mined: readonly MinedTransaction[]) {
  const carried = await lockCarried(tx, idsOf(mined.map(({ transaction }) => transaction)), [...purposes.keys()])
  const { moved, left } = splitByOutcome(carried, mined)
  const spent = spentOn(carried, mined)
  await markLeft(
    tx,
    left.map((relay) => ({ ...relay, attempts: hasBurnt(relay, spent) ? attemptsAfterGasExceeded : relay.attempts })),
  )
  await markSettled(
    tx,
    moved.map(({ id }) => id),
  )
  const groups = byPurpose([...purposes.values()], carried)
  if (carried.length > 1) for (const [purpose, own] of groups) await lockSubjects(tx, purpose, own)
  const hashes = new Map(mined.map(({ transaction: { id, hash } }) => [id, hash]))
  const blocks = new Map(
    mined.map(({ transaction: { id }, receipt: { blockNumber: number, blockHash: hash } }) => [id, { number, hash }]),
  )
  for (const [purpose, own] of groups) {
    const [ownMoved, ownLeft] = [moved.filter((one) => own.includes(one)), left.filter((one) => own.includes(one))]
    if (ownLeft.length > 0) await purpose.onLeft?.(tx, ownLeft)
    const settled = withHashes(ownMoved, hashes).map(({ relay, hash: transactionHash }) => {
      return { relay, transactionHash, block: blocks.get(relay.transactionId), wei: spent.get(relay)?.wei ?? 0n }
    })
    if (settled.length > 0) await purpose.onSettled(tx, settled)
    const lost = ownLeft.map((relay) => ({ relay, wei: spent.get(relay)?.wei ?? 0n }))
    if (lost.length > 0) await purpose.onSpent(tx, lost)
  }
}

function hasBurnt(relay: Relay, spent: ReadonlyMap<Relay, Spent>): boolean {
  return relay.alone && (spent.get(relay)?.gas ?? 0n) > gasOf(relay.payload)
}

/** Splits relays into those whose money a block moved and the others. */
function splitByOutcome(carried: Carried, mined: readonly MinedTransaction[]) {
  const isMoved = new Map(mined.map(({ transaction, receipt }) => [transaction.id, movedIn(receipt)]))
  const [moved, left]: [CarriedRow[], CarriedRow[]] = [[], []]
  for (const relay of carried) (isMoved.get(relay.transactionId)?.(relay.payload) === true ? moved : left).push(relay)
  return { moved, left }
}

/**
 * Returns what each relay cost. A relay that was sent alone costs the whole transaction; in a shared transaction it
 * costs the gas of its own call and an equal share of the rest. If such a transaction did not log the gas of its calls,
 * it is unknown which call used the gas, so each relay counts with its whole grant, or with its equal share if that is
 * more.
 */
function spentOn(carried: Carried, mined: readonly MinedTransaction[]): ReadonlyMap<Relay, Spent> {
  const receipts = new Map(mined.map(({ transaction, receipt }) => [transaction.id, receipt]))
  return new Map(
    [...Map.groupBy(carried, ({ transactionId }) => transactionId)].flatMap(([transactionId, relays]) => {
      const receipt = receipts.get(transactionId)
      return receipt === undefined ? [] : sharesOf(relays, receipt)
    }),
  )
}

/** The cost of a relay, in gas and in wei. */
interface Spent {
  /** Without the gas that the bytes of its transaction took (Arbitrum), which no code can raise. */
  readonly gas: bigint
  readonly wei: bigint
}

/** The relays are in the order of their ids, like the calls of their transaction. */
function sharesOf(
  relays: Carried,
  { gasUsed, effectiveGasPrice, l1Fee, dataGas = 0n, logs }: Receipt,
): [Relay, Spent][] {
  const count = BigInt(relays.length)
  const used = usedGasIn(logs, relays.length)
  const rest = gasUsed - (used ?? []).reduce((sum, gas) => sum + gas, 0n)
  const part = (rest + count - 1n) / count
  return relays.map((relay, index) => {
    const grant = gasOf(relay.payload)
    const own = used?.[index]
    const gas = own !== undefined ? own + part : count === 1n || part > grant ? part : grant
    return [relay, { gas: gas - dataGas / count, wei: gas * effectiveGasPrice + l1Fee / count }]
  })
}

/** Groups by purpose, in the order of the names. */
function byPurpose(purposes: readonly RelayPurpose[], carried: Carried): [RelayPurpose, Carried][] {
  const groups = Map.groupBy(carried, ({ purpose }) => purpose)
  const known = new Map(purposes.map((purpose) => [purpose.purpose, purpose]))
  return inLockOrder<Carried>(groups).map(([name, own]) => [purposeOf({ purposes: known }, name), own])
}

function withHashes(relays: Carried, hashes: ReadonlyMap<string, `0x${string}`>) {
  return relays.flatMap((relay) => {
    const hash = hashes.get(relay.transactionId)
    return hash === undefined ? [] : [{ relay, hash }]
  })
}

function namesOf(purposes: readonly RelayPurpose[]): string[] {
  return purposes.map(({ purpose }) => purpose)
}

function idsOf(transactions: readonly LaneTransaction[]) {
  return transactions.map(({ id }) => id)
}
