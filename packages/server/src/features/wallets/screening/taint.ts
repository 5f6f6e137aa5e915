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

/** Movements of a place that are read at once; a checkpoint stands behind each such page. */
const pageMax = 100

/**
 * Follows flagged money after something changed at these places: freezes what is left of it there, and follows what was sent on to other
 * wallets of the organisation. Places without flagged or tainted money are skipped, unless `which` is `all`: where a flag ended, the money may
 * have moved on. What a change costs depends on what came after it and not on the length of the ledger. The frozen amount of a place is never
 * more than its booked balance. Running it again changes nothing. The caller has locked the network's cursor row, so that one transaction at a time
 * follows the money of a network.
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
  /** What the place holds behind the page. */
  readonly end: Checkpoint
  readonly moved: readonly MovedTaint[]
  /** Whether more comes behind it; there is then a checkpoint at its end. */
  readonly isPart: boolean
}

/** Follows the movements of one page, which begins at the last checkpoint before the change. */
async function followPage(tx: Tx, { place, block }: Change): Promise<Page> {
  const known = await resetCheckpoints(tx, place, block)
  const start = known ?? (await sumBefore(tx, place, block))
  if (known === undefined) await insertCheckpoint(tx, place, start)
  const { rows, isPart } = await wholeBlocks(tx, place, start.block)
  const { end, moved } = traceTaint(start, rows)
  if (isPart) await insertCheckpoint(tx, place, end)
  return { end, moved, isPart }
}

/** The next movements, of whole blocks. */
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
 * Follows tainted money through movements of a place, given in the order of the chain: clean money leaves first, and what leaves beyond it is
 * tainted. Answers what the place holds afterwards, and what of each outgoing movement was tainted.
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
 * Writes which rows of a place are frozen. Tainted money leaves oldest first, so the newest tainted rows are frozen. Rows below the change are read
 * only where their share has changed.
 */
async function freeze(tx: Tx, { place, block, rawTainted }: Change & { readonly rawTainted: bigint }): Promise<void> {
  const rows = await listTaintedRows(tx, place, block)
  const { changed, rawRest } = shareOut(rawTainted, rows)
  await updateFrozen(tx, place, changed)
  const rawBelow = rows.reduce((rest, { rawFrozen }) => rest - rawFrozen, await findFrozen(tx, place))
  if (rawBelow !== rawRest) await spreadFrozen(tx, place, block, rawRest)
  await upsertPlace(tx, place, rawTainted)
}

/** Shares an amount out to tainted rows, given the newest first. Answers the rows whose frozen amount changes, and what is left for older rows. */
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

/** Adds a change; of two at one place the lower block counts. */
function takeLower(waiting: Map<string, Change>, change: Change): void {
  const key = keyOf(change.place)
  const known = waiting.get(key)
  if (known === undefined || change.block < known.block) waiting.set(key, change)
}

/** Takes the change in the lowest block: tainted money moves forward, so what is followed in this order is followed once. */
function takeLowest(waiting: Map<string, Change>): Change | undefined {
  let lowest: Change | undefined
  for (const change of waiting.values()) if (lowest === undefined || change.block < lowest.block) lowest = change
  if (lowest !== undefined) waiting.delete(keyOf(lowest.place))
  return lowest
}
