import type { Tx } from '../../../platform/db/db.ts'
import {
  type Change,
  type Checkpoint,
  findFrozen,
  insertCheckpoint,
  type LedgerRow,
  listLedger,
  listTaintedChanges,
  listTaintedRows,
  type MovedTaint,
  type Place,
  resetCheckpoints,
  spreadFrozen,
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
  const followed = new Map<string, Change & { readonly rawTainted: bigint }>()
  const wait = (change: Change): void => takeLower(waiting, change)
  for (const change of which === 'all' ? own : await listTaintedChanges(tx, own)) wait(change)
  for (let next = takeLowest(waiting); next !== undefined; next = takeLowest(waiting)) {
    const { place, block } = next
    const key = keyOf(place)
    const { end, moved, isPart } = await followPage(tx, next)
    const first = followed.get(key)?.block ?? block
    followed.set(key, { place, block: first < block ? first : block, rawTainted: end.rawTainted })
    for (const change of await updateTaintedReceivers(tx, place, moved)) wait(change)
    if (isPart) wait({ place, block: end.block + 1n })
  }
  for (const place of followed.values()) await freeze(tx, place)
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
  let { block, rawBalance: balance, rawTainted: tainted } = start
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
    moved.push({ txHash, logIndex, rawTaint: excess < rawAmount ? excess : rawAmount })
  }
  return { end: { block, rawBalance: balance, rawTainted: tainted }, moved }
}

/**
 * Stores the frozen amounts of rows. Tainted money leaves oldest first, so the newest tainted rows are frozen. Rows below the change are
 * read only if their share has changed.
 */
async function freeze(tx: Tx, { place, block, rawTainted }: Change & { readonly rawTainted: bigint }): Promise<void> {
  const rows = await listTaintedRows(tx, place, block)
  const { changed, rawRest } = shareOut(rawTainted, rows)
  await updateFrozen(tx, place, changed)
  const rawBelow = rows.reduce((rest, { rawFrozen }) => rest - rawFrozen, await findFrozen(tx, place))
  if (rawBelow !== rawRest) await spreadFrozen(tx, place, block, rawRest)
  await upsertPlace(tx, place, rawTainted)
}

/**
 * Distributes an amount over tainted rows, newest first. Returns the rows whose frozen amount changes, and the remainder for older rows.
 */
export function shareOut(
  raw: bigint,
  rows: readonly TaintedRow[],
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
