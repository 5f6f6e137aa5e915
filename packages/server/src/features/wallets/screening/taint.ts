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
  resetCheckpoints,
  sumBefore,
  type TaintedRow,
  updateFrozen,
  updateTaintedReceivers,
  upsertTaintedAsset,
  type WalletToken,
} from './taint-store.ts'
import { insertTraces, listTraced, type Trace, takeTraces } from './taint-trace-store.ts'

/** Movements of an asset per page; each full page ends with a checkpoint. */
const pageMax = 100
/** Most pages that one transaction traces, so that bookings of the network never wait long for it. */
const pagesMax = 500

/**
 * Traces flagged money after changes at these assets: freezes the rest of it there, and follows what was sent to other wallets of the
 * organisation. Assets without flagged or tainted money are skipped, unless `which` is `all`: if a flag ended, the money may have moved on.
 * The cost of a change depends on the movements after it and not on the length of the ledger. The frozen amount of an asset never exceeds
 * its booked balance. Idempotent. The caller has locked the network's cursor row, so that one transaction at a time traces the money of a
 * network.
 */
export async function followTaint(
  tx: Tx,
  changes: readonly Change[],
  which: 'all' | 'tainted' = 'tainted',
): Promise<void> {
  const own = changes.filter(({ asset }) => !asset.walletId.startsWith('byw_'))
  const waiting = new Map<string, Trace>()
  for (const change of which === 'all' ? own : await listTaintedChanges(tx, own)) addTrace(waiting, change)
  await traceSome(tx, waiting)
}

/**
 * Continues traces of the network that earlier transactions left, in the order of their blocks. Returns whether there were any. The caller has
 * locked the network's cursor row.
 */
export async function continueTraces(tx: Tx, network: string): Promise<boolean> {
  const waiting = new Map<string, Trace>()
  for (const trace of await takeTraces(tx, network, pagesMax)) addTrace(waiting, trace, trace.first)
  if (waiting.size === 0) return false
  await traceSome(tx, waiting)
  return true
}

/** Traces up to `pagesMax` pages, and leaves the others to `continueTraces`; until then `amountsOnHold` has the whole balance of each wallet that they may reach. */
async function traceSome(tx: Tx, waiting: Map<string, Trace>): Promise<void> {
  const followed = new Map<string, Traced>()
  for (let pages = 0; pages < pagesMax; pages++) {
    const next = takeLowest(waiting)
    if (next === undefined) break
    const { asset, first } = next
    const key = keyOf(asset)
    const { end, moved, isPart } = await followPage(tx, next)
    const block = lower(followed.get(key)?.block ?? first, first)
    followed.set(key, { asset, block, end })
    for (const change of await updateTaintedReceivers(tx, asset, moved)) addTrace(waiting, change)
    if (isPart) addTrace(waiting, { asset, block: end.block + 1n }, block)
  }
  // Frozen amounts are known once all movements of an asset were traced, and change from its first changed block on, whichever step came to it.
  const left = new Map(waiting)
  for (const asset of await listTraced(tx, [...followed.values()])) {
    const traced = followed.get(keyOf(asset))
    if (traced !== undefined) addTrace(left, { asset, block: traced.end.block + 1n }, traced.block)
  }
  for (const [key, traced] of followed) {
    const trace = left.get(key)
    if (trace === undefined) await freeze(tx, traced)
    else addTrace(left, trace, lower(trace.first, traced.block))
  }
  await insertTraces(tx, [...left.values()])
}

/** An asset, the lowest block with a change there, and the state after all its movements. */
interface Traced extends Change {
  readonly end: Checkpoint
}

interface Page {
  /** The state of the asset after the page. */
  readonly end: Checkpoint
  readonly moved: readonly MovedTaint[]
  /** Whether more movements follow; the page then ends with a checkpoint. */
  readonly isPart: boolean
}

/** Traces the movements of one page, which begins at the last checkpoint before the change. */
async function followPage(tx: Tx, { asset, block }: Change): Promise<Page> {
  const known = await resetCheckpoints(tx, asset, block)
  const start = known ?? (await sumBefore(tx, asset, block))
  if (known === undefined) await insertCheckpoint(tx, asset, start)
  const { rows, isPart } = await wholeBlocks(tx, asset, start.block)
  const { end, moved } = traceTaint(start, rows)
  if (isPart) await insertCheckpoint(tx, asset, end)
  return { end, moved, isPart }
}

/** The next movements, in whole blocks. */
async function wholeBlocks(tx: Tx, asset: WalletToken, above: bigint) {
  for (let most = pageMax; ; most *= 2) {
    const rows = await listLedger(tx, asset, above, most + 1)
    if (rows.length <= most) return { rows, isPart: false }
    const last = rows.at(-1)?.block
    const whole = rows.filter((row) => row.block !== last)
    if (whole.length > 0) return { rows: whole, isPart: true }
  }
}

/**
 * Traces tainted money through movements of an asset, in chain order: clean money leaves first, and the excess is tainted. Returns the state
 * of the asset afterwards, and the tainted amount of each outgoing movement.
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
async function freeze(tx: Tx, { asset, block, end: { rawTainted, rawLeft } }: Traced): Promise<void> {
  let [rawRest, rawBelow] = [rawTainted, await findFrozen(tx, asset)]
  for await (const rows of taintedPages(tx, asset, { below: null, from: block })) {
    const shared = distribute(rawRest, rows)
    await updateFrozen(tx, asset, shared.changed)
    rawRest = shared.rawRest
    rawBelow = rows.reduce((rest, { rawFrozen }) => rest - rawFrozen, rawBelow)
  }
  if (rawRest < rawBelow) await thawOldest(tx, asset, { below: block, raw: rawBelow - rawRest })
  else await freezeOlder(tx, asset, { below: block, raw: rawRest - rawBelow })
  await upsertTaintedAsset(tx, asset, { rawFrozen: rawTainted, rawLeft })
}

/** Pages of tainted rows, newest first. */
async function* taintedPages(
  tx: Tx,
  asset: WalletToken,
  range: Parameters<typeof listTaintedRows>[2],
): AsyncGenerator<TaintedRow[]> {
  let rows = await listTaintedRows(tx, asset, range, pageMax)
  for (let last = rows.at(-1); last !== undefined; last = rows.at(-1)) {
    yield rows
    rows = rows.length < pageMax ? [] : await listTaintedRows(tx, asset, { ...range, below: last }, pageMax)
  }
}

/** An amount to thaw or freeze in blocks below this one. */
interface MovedBelow {
  readonly below: bigint
  readonly raw: bigint
}

/** Takes this amount from the frozen amounts below a block, those of the oldest rows first. */
async function thawOldest(tx: Tx, asset: WalletToken, { below, raw }: MovedBelow): Promise<void> {
  for (let rest = raw; rest > 0n; ) {
    const rows = await listOldestFrozen(tx, asset, below, pageMax)
    if (rows.length === 0) return
    const kept = new Map<string, bigint>()
    for (const { id, rawFrozen } of rows) {
      if (rest === 0n) break
      const thawed = rawFrozen < rest ? rawFrozen : rest
      rest -= thawed
      kept.set(id, rawFrozen - thawed)
    }
    await updateFrozen(tx, asset, kept)
  }
}

/** Freezes a further amount of the tainted rows below a block, newest first. It starts at the oldest frozen row, because all newer rows are frozen completely. */
async function freezeOlder(tx: Tx, asset: WalletToken, { below, raw }: MovedBelow): Promise<void> {
  if (raw === 0n) return
  const [oldest] = await listOldestFrozen(tx, asset, below, 1)
  let rest = raw
  const take = async (rows: readonly TaintedRow[]): Promise<void> => {
    const frozenBefore = rows.reduce((sum, { rawFrozen }) => sum + rawFrozen, 0n)
    const shared = distribute(rest + frozenBefore, rows)
    await updateFrozen(tx, asset, shared.changed)
    rest = shared.rawRest
  }
  if (oldest !== undefined) await take([oldest])
  for await (const rows of taintedPages(tx, asset, { below: oldest ?? below, from: null })) {
    if (rest === 0n) return
    await take(rows)
  }
}

/**
 * Distributes an amount over tainted rows, newest first. Returns the rows whose frozen amount changes, and the remainder for older rows.
 */
export function distribute(
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

function keyOf({ tenant, walletId, network, token }: WalletToken): string {
  return `${tenant.organisationId}/${tenant.environment}/${walletId}/${network}/${token}`
}

/** Adds a change; of two changes of one wallet and token the lower blocks are kept. */
function addTrace(waiting: Map<string, Trace>, { asset, block }: Change, first = block): void {
  const key = keyOf(asset)
  const known = waiting.get(key)
  waiting.set(key, { asset, block: lower(known?.block ?? block, block), first: lower(known?.first ?? first, first) })
}

function lower(one: bigint, other: bigint): bigint {
  return one < other ? one : other
}

/** Takes the change in the lowest block: tainted money moves forward in time, so in this order each asset is traced once. */
function takeLowest(waiting: Map<string, Trace>): Trace | undefined {
  let lowest: Trace | undefined
  for (const change of waiting.values()) if (lowest === undefined || change.block < lowest.block) lowest = change
  if (lowest !== undefined) waiting.delete(keyOf(lowest.asset))
  return lowest
}
