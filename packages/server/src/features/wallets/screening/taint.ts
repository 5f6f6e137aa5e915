import type { Tx } from '../../../platform/db/db.ts'
import { freezeSome, lower, type Traced } from './freeze.ts'
import {
  type Change,
  type Checkpoint,
  insertCheckpoint,
  type LedgerRow,
  listLedger,
  listTaintedChanges,
  type MovedTaint,
  resetCheckpoints,
  sumBefore,
  updateTaintedReceivers,
  type WalletToken,
} from './taint-store.ts'
import { insertTraces, listTraced, type Trace, takeTraces } from './taint-trace-store.ts'
import { wholeBlocks } from './whole-blocks.ts'

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

/** Traces up to `pagesMax` pages, freezes what `freezeSome` does, and leaves the rest to `continueTraces`; until then `amountsOnHold` has the whole balance of each wallet that they may reach. */
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
  const ended: Traced[] = []
  for (const [key, traced] of followed) {
    const trace = left.get(key)
    if (trace === undefined) ended.push(traced)
    else addTrace(left, trace, lower(trace.first, traced.block))
  }
  await insertTraces(tx, [...left.values(), ...(await freezeSome(tx, ended))])
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
  const { rows, isPart } = await wholeBlocks(pageMax, (most) => listLedger(tx, asset, start.block, most))
  const { end, moved } = traceTaint(start, rows)
  if (isPart) await insertCheckpoint(tx, asset, end)
  return { end, moved, isPart }
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

function keyOf({ tenant, walletId, network, token }: WalletToken): string {
  return `${tenant.organisationId}/${tenant.environment}/${walletId}/${network}/${token}`
}

/** Adds a change; of two changes of one wallet and token the lower blocks are kept. */
function addTrace(waiting: Map<string, Trace>, { asset, block }: Change, first = block): void {
  const key = keyOf(asset)
  const known = waiting.get(key)
  waiting.set(key, { asset, block: lower(known?.block ?? block, block), first: lower(known?.first ?? first, first) })
}

/** Takes the change in the lowest block: tainted money moves forward in time, so in this order each asset is traced once. */
function takeLowest(waiting: Map<string, Trace>): Trace | undefined {
  let lowest: Trace | undefined
  for (const change of waiting.values()) if (lowest === undefined || change.block < lowest.block) lowest = change
  if (lowest !== undefined) waiting.delete(keyOf(lowest.asset))
  return lowest
}
