import type { LaneHandler, LaneTransaction, MinedTransaction, Receipt } from '../../chain/port.ts'
import type { Tx } from '../../platform/db/db.ts'
import { settle } from './ending.ts'
import { gasOf, movedIn } from './forms/index.ts'
import { purposeOf, type RelayerParts, relayPurpose } from './parts.ts'
import type { Relay, RelayPurpose, SpentOnRelay } from './port.ts'
import { type CarriedRow, listCarried, markLeft } from './store.ts'

/** What the relayer does with the transactions that carry relays, inside the database transaction that marks the step. */
export function relayHandler(parts: Pick<RelayerParts, 'purposes'>): LaneHandler {
  const onFinal = (tx: Tx, mined: readonly MinedTransaction[]) => finish(parts, tx, mined)
  return {
    purpose: relayPurpose,
    onSent: (tx, transactions) => reportSent(parts, tx, transactions),
    onMined: (tx, mined) => reportMined(parts, tx, mined),
    onReorganised: (tx, transactions) => reportReorganized(parts, tx, idsOf(transactions)),
    onReplaced: (tx, transactions) => sendAnew(parts, tx, transactions),
    onFinal,
    onMinedAndFinal: onFinal,
  }
}

/** How often a relay that has burnt more than its grant counts as tried: more often than any is. */
const attemptsOfBurner = 1_000
/** Of a batch's gas limit, the part beyond which a call in it may have run out of gas. */
const gasShareMax = 97n

type Carried = readonly CarriedRow[]

async function reportSent(
  { purposes }: Pick<RelayerParts, 'purposes'>,
  tx: Tx,
  transactions: readonly LaneTransaction[],
) {
  const interested = [...purposes.values()].filter(({ onSent }) => onSent !== undefined)
  const carried = await listCarried(tx, idsOf(transactions), namesOf(interested))
  const hashes = new Map(transactions.map(({ id, hash }) => [id, hash]))
  for (const [purpose, own] of byPurpose(interested, carried)) {
    await purpose.onSent?.(tx, withHashes(own, hashes))
  }
}

async function reportMined({ purposes }: Pick<RelayerParts, 'purposes'>, tx: Tx, mined: readonly MinedTransaction[]) {
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

/** Their block is gone. They stay included: the same bytes may be mined again. */
async function reportReorganized(
  { purposes }: Pick<RelayerParts, 'purposes'>,
  tx: Tx,
  transactionIds: readonly `ctx_${string}`[],
) {
  const interested = [...purposes.values()].filter(({ onReorganized }) => onReorganized !== undefined)
  const carried = await listCarried(tx, transactionIds, namesOf(interested))
  for (const [purpose, own] of byPurpose(interested, carried)) {
    await purpose.onReorganized?.(tx, own)
  }
}

/** Their transactions can never be mined: they wait again, once the chain was read. */
async function sendAnew(
  { purposes }: Pick<RelayerParts, 'purposes'>,
  tx: Tx,
  transactions: readonly LaneTransaction[],
) {
  const carried = await listCarried(tx, idsOf(transactions), [...purposes.keys()])
  for (const [purpose, own] of byPurpose([...purposes.values()], carried)) {
    await purpose.onLeft?.(tx, own)
  }
  await markLeft(tx, carried)
}

async function finish({ purposes }: Pick<RelayerParts, 'purposes'>, tx: Tx, mined: readonly MinedTransaction[]) {
  const carried = await listCarried(tx, idsOf(mined.map(({ transaction }) => transaction)), [...purposes.keys()])
  const { moved, left } = splitByOutcome(carried, mined)
  const hashes = new Map(mined.map(({ transaction: { id, hash } }) => [id, hash]))
  const spent = spentOn(carried, mined)
  const groups = byPurpose([...purposes.values()], carried)
  await markLeft(
    tx,
    left.map((relay) => ({
      ...relay,
      attempts: hasBurnt(relay, spent.get(relay.id)) ? attemptsOfBurner : relay.attempts,
    })),
  )
  for (const [purpose, own] of groups) {
    const [ownMoved, ownLeft] = [moved.filter((one) => own.includes(one)), left.filter((one) => own.includes(one))]
    if (ownLeft.length > 0) await purpose.onLeft?.(tx, ownLeft)
    await settle(
      tx,
      purpose,
      withHashes(ownMoved, hashes).map(({ relay, hash }) => ({ relay, transactionHash: hash })),
    )
    await purpose.onSpent?.(
      tx,
      own.flatMap(({ id }) => spent.get(id) ?? []),
    )
  }
}

function hasBurnt({ alone, payload }: Relay, spent: SpentOnRelay | undefined): boolean {
  return alone && spent !== undefined && spent.gas > gasOf(payload)
}

/** Those whose money a block moved, and those that it did not. */
function splitByOutcome(carried: Carried, mined: readonly MinedTransaction[]) {
  const isMoved = new Map(
    mined.map(({ transaction, receipt }) => [
      transaction.id,
      movedIn(receipt.status === 'success' ? receipt.logs : []),
    ]),
  )
  const [moved, left]: [CarriedRow[], CarriedRow[]] = [[], []]
  for (const relay of carried) (isMoved.get(relay.transactionId)?.(relay.payload) === true ? moved : left).push(relay)
  return { moved, left }
}

/**
 * What each relay cost. Alone it is everything; in a batch of ordinary signatures an equal part. Where a batch may have run out of gas nobody
 * can say whose call did it, and each counts with its whole grant.
 */
function spentOn(carried: Carried, mined: readonly MinedTransaction[]): ReadonlyMap<bigint, SpentOnRelay> {
  const receipts = new Map(mined.map(({ transaction, receipt }) => [transaction.id, receipt]))
  const spent = [...Map.groupBy(carried, ({ transactionId }) => transactionId)].flatMap(([transactionId, relays]) => {
    const receipt = receipts.get(transactionId)
    return receipt === undefined ? [] : relays.map((relay): SpentOnRelay => shareOf(relay, relays, receipt))
  })
  return new Map(spent.map((one) => [one.relay.id, one]))
}

function shareOf(relay: Relay, relays: Carried, { gasUsed, effectiveGasPrice, l1Fee, status }: Receipt): SpentOnRelay {
  const count = BigInt(relays.length)
  const granted = relays.reduce((gas, { payload }) => gas + gasOf(payload), 0n)
  const isPlain = status === 'success' && gasUsed * 100n < granted * gasShareMax
  const gas = count === 1n ? gasUsed : isPlain ? (gasUsed + count - 1n) / count : gasOf(relay.payload)
  return { relay, gas, wei: gas * effectiveGasPrice + l1Fee / count }
}

function byPurpose(purposes: readonly RelayPurpose[], carried: Carried): [RelayPurpose, Carried][] {
  const groups = Map.groupBy(carried, ({ purpose }) => purpose)
  const known = new Map(purposes.map((purpose) => [purpose.purpose, purpose]))
  return [...groups].map(([name, own]) => [purposeOf({ purposes: known }, name), own])
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
