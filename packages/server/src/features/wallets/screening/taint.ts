import type { Tx } from '../../../platform/db/db.ts'
import {
  type Change,
  type Checkpoint,
  findFrozen,
  insertCheckpoint,
  type LedgerRow,
  listLedger,
  listOldestFrozen,
  listTaintedChanges,
  listTaintedRows,
  type MovedTaint,
  type Place,
  resetCheckpoints,
  sumBefore,
  type TaintedRow,
  updateFrozen,
  updateTaintedReceivers,
  upsertPlace,
} from './taint-store.ts'

/** Movements of a place per page; each full page ends with a checkpoint. */
const pageMax = 100

/**
 * Traces flagged money after changes at these places: freezes the rest of it there, and follows what was sent to other wallets of the
 * organisation. Places without flagged or tainted money are skipped, unless `which` is `all`: if a flag ended, the money may have moved on.
 * The cost of a change depends on the movements after it and not on the length of the ledger. The frozen amount of a place never exceeds
 * its booked balance. Idempotent. The caller has locked the network's cursor row, so that one transaction at a time traces the money of a
 * network.
 */
export async function followTaint(
  tx: Tx,
  changes: readonly Change[],
  which: 'all' | 'tainted' = 'tainted',
): Promise<void> {
  const own = changes.filter(({ place }) => !place.walletId.startsWith('byw_'))
  const waiting = new Map<string, Change>()
  const followed = new Map<string, Traced>()
  const wait = (change: Change): void => takeLower(waiting, change)
  for (const change of which === 'all' ? own : await listTaintedChanges(tx, own)) wait(change)
  for (let next = takeLowest(waiting); next !== undefined; next = takeLowest(waiting)) {
    const { place, block } = next
    const key = keyOf(place)
    const { end, moved, isPart } = await followPage(tx, next)
    const first = followed.get(key)?.block ?? block
    followed.set(key, { place, block: first < block ? first : block, end })
    for (const change of await updateTaintedReceivers(tx, place, moved)) wait(change)
    if (isPart) wait({ place, block: end.block + 1n })
  }
  for (const place of followed.values()) await freeze(tx, place)
}

/** A place, the lowest block with a change there, and the state after all its movements. */
interface Traced extends Change {
  readonly end: Checkpoint
}

interface Page {
  /** The state of the place after the page. */
  readonly end: Checkpoint
  readonly moved: readonly MovedTaint[]
  /** Whether more movements follow; the page then ends with a checkpoint. */
  readonly isPart: boolean
}

/** Traces the movements of one page, which begins at the last checkpoint before the change. */
async function followPage(tx: Tx, { place, block }: Change): Promise<Page> {
  const known = await resetCheckpoints(tx, place, block)
  const start = known ?? (await sumBefore(tx, place, block))
  if (known === undefined) await insertCheckpoint(tx, place, start)
  const { rows, isPart } = await wholeBlocks(tx, place, start.block)
  const { end, moved } = traceTaint(start, rows)
  if (isPart) await insertCheckpoint(tx, place, end)
  return { end, moved, isPart }
}

/** The next movements, in whole blocks. */
async function wholeBlocks(tx: Tx, place: Place, above: bigint) {
  for (let most = pageMax; ; most *= 2) {
    const rows = await listLedger(tx, place, above, most + 1)
    if (rows.length <= most) return { rows, isPart: false }
    const last = rows.at(-1)?.block
    const whole = rows.filter((row) => row.block !== last)
    if (whole.length > 0) return { rows: whole, isPart: true }
  }
}

/**
 * Traces tainted money through movements of a place, in chain order: clean money leaves first, and the excess is tainted. Returns the state
 * of the place afterwards, and the tainted amount of each outgoing movement.
 */
export function traceTaint(
  start: Checkpoint,
  rows: readonly LedgerRow[],
): { readonly end: Checkpoint; readonly moved: readonly MovedTaint[] } {
  let { block, rawBalance: balance, rawTainted: tainted, rawLeft: left } = start
  const moved: MovedTaint[] = []
  for (const { direction, rawAmount, rawTaint, txHash, logIndex, block: at } of rows) {
    block = at
    if (direction === 'in') {
      balance += rawAmount
      tainted += rawTaint
      continue
    }
    balance = balance > rawAmount ? balance - rawAmount : 0n
    const excess = tainted > balance ? tainted - balance : 0n
    tainted -= excess
    left += excess
    moved.push({ txHash, logIndex, rawTaint: excess < rawAmount ? excess : rawAmount })
  }
  return { end: { block, rawBalance: balance, rawTainted: tainted, rawLeft: left }, moved }
}

/**
 * Stores the frozen amounts of rows. Tainted money leaves oldest first, so the newest tainted rows are frozen. Rows below the change are
 * read only if their share has changed, and of them only those whose share has.
 */
async function freeze(tx: Tx, { place, block, end: { rawTainted, rawLeft } }: Traced): Promise<void> {
  let [rawRest, rawBelow] = [rawTainted, await findFrozen(tx, place)]
  for await (const rows of taintedPages(tx, place, { below: null, from: block })) {
    const shared = shareOut(rawRest, rows)
    await updateFrozen(tx, place, shared.changed)
    rawRest = shared.rawRest
    rawBelow = rows.reduce((rest, { rawFrozen }) => rest - rawFrozen, rawBelow)
  }
  if (rawRest < rawBelow) await thawOldest(tx, place, block, rawBelow - rawRest)
  else await freezeOlder(tx, place, block, rawRest - rawBelow)
  await upsertPlace(tx, place, { rawFrozen: rawTainted, rawLeft })
}

/** Pages of tainted rows, newest first. */
async function* taintedPages(
  tx: Tx,
  place: Place,
  range: Parameters<typeof listTaintedRows>[2],
): AsyncGenerator<TaintedRow[]> {
  let rows = await listTaintedRows(tx, place, range, pageMax)
  for (let last = rows.at(-1); last !== undefined; last = rows.at(-1)) {
    yield rows
    rows = rows.length < pageMax ? [] : await listTaintedRows(tx, place, { ...range, below: last }, pageMax)
  }
}

/** Takes this amount from the frozen amounts below a block, those of the oldest rows first. */
async function thawOldest(tx: Tx, place: Place, below: bigint, raw: bigint): Promise<void> {
  for (let rest = raw; rest > 0n; ) {
    const rows = await listOldestFrozen(tx, place, below, pageMax)
    if (rows.length === 0) return
    const kept = new Map<string, bigint>()
    for (const { id, rawFrozen } of rows) {
      if (rest === 0n) break
      const thawed = rawFrozen < rest ? rawFrozen : rest
      rest -= thawed
      kept.set(id, rawFrozen - thawed)
    }
    await updateFrozen(tx, place, kept)
  }
}

/** Freezes a further amount of the tainted rows below a block, newest first. It starts at the oldest frozen row, because all newer rows are frozen completely. */
async function freezeOlder(tx: Tx, place: Place, below: bigint, raw: bigint): Promise<void> {
  if (raw === 0n) return
  const [oldest] = await listOldestFrozen(tx, place, below, 1)
  let rest = raw
  const take = async (rows: readonly TaintedRow[]): Promise<void> => {
    const frozenBefore = rows.reduce((sum, { rawFrozen }) => sum + rawFrozen, 0n)
    const shared = shareOut(rest + frozenBefore, rows)
    await updateFrozen(tx, place, shared.changed)
    rest = shared.rawRest
  }
  if (oldest !== undefined) await take([oldest])
  for await (const rows of taintedPages(tx, place, { below: oldest ?? below, from: null })) {
    if (rest === 0n) return
    await take(rows)
  }
}

/**
 * Distributes an amount over tainted rows, newest first. Returns the rows whose frozen amount changes, and the remainder for older rows.
 */
export function shareOut(
  raw: bigint,
  rows: readonly Pick<TaintedRow, 'id' | 'rawTaint' | 'rawFrozen'>[],
): { readonly changed: ReadonlyMap<string, bigint>; readonly rawRest: bigint } {
  const changed = new Map<string, bigint>()
  let rest = raw
  for (const { id, rawTaint, rawFrozen } of rows) {
    const share = rawTaint < rest ? rawTaint : rest
    rest -= share
    if (share !== rawFrozen) changed.set(id, share)
  }
  return { changed, rawRest: rest }
}

function keyOf({ tenant, walletId, network, token }: Place): string {
  return `${tenant.organisationId}/${tenant.environment}/${walletId}/${network}/${token}`
}

/** Adds a change; of two at one place the lower block is kept. */
function takeLower(waiting: Map<string, Change>, change: Change): void {
  const key = keyOf(change.place)
  const known = waiting.get(key)
  if (known === undefined || change.block < known.block) waiting.set(key, change)
}

/** Takes the change in the lowest block: tainted money moves forward in time, so in this order each place is traced once. */
function takeLowest(waiting: Map<string, Change>): Change | undefined {
  let lowest: Change | undefined
  for (const change of waiting.values()) if (lowest === undefined || change.block < lowest.block) lowest = change
  if (lowest !== undefined) waiting.delete(keyOf(lowest.place))
  return lowest
}
