import type { Tx } from '../../../platform/db/db.ts'
import {
  type Change,
  type Checkpoint,
  listOldestFrozen,
  listTaintedBelow,
  listTaintedFrom,
  sumTaint,
  type TaintedRow,
  updateFrozen,
  upsertTaintedAsset,
  type WalletToken,
} from './taint-store.ts'
import type { Trace } from './taint-trace-store.ts'
import { wholeBlocks } from './whole-blocks.ts'

/** Most rows whose frozen amounts one transaction reads, in equal parts for its assets. */
const rowsMax = 1_000
/** Most rows of an asset where there are many assets. */
const rowsMin = 10
/** Most rows per statement. */
const pageMax = 100

/** An asset, the lowest block with a change there, and the state after all its movements. */
export interface Traced extends Change {
  readonly end: Checkpoint
}

/**
 * Stores the frozen amounts of traced assets, of about `rowsMax` rows. Returns the assets with rows left, as traces for a later transaction; until then
 * `amountsOnHold` has the whole balance of each wallet that they may reach. The frozen amounts before the first block of such a trace are those of
 * an earlier end of the asset, so later movements, which only change the end, do not make it begin again.
 */
export async function freezeSome(tx: Tx, ended: readonly Traced[]): Promise<Trace[]> {
  const most = Math.max(rowsMin, Math.floor(rowsMax / Math.max(ended.length, 1)))
  const left: Trace[] = []
  for (const traced of ended) {
    const { asset, end } = traced
    const first = await freeze(tx, traced, most)
    if (first !== undefined) left.push({ asset, block: end.block + 1n, first })
    else await upsertTaintedAsset(tx, asset, { rawFrozen: end.rawTainted, rawLeft: end.rawLeft })
  }
  return left
}

/**
 * Stores the frozen amounts of up to `most` rows of an asset. Tainted money leaves oldest first, so the newest tainted rows are frozen. First the
 * rows below the change, whose tainted amounts are unchanged, are frozen or thawed up to the new end, and then each row from the change on. Returns the
 * first block that is left, or undefined if none is.
 */
async function freeze(tx: Tx, { asset, block, end: { rawLeft } }: Traced, most: number): Promise<bigint | undefined> {
  const rawBelow = await sumTaint(tx, asset, block)
  const raw = atLeastZero(rawBelow - rawLeft) - (await sumFrozen(tx, asset, { below: block, raw: rawBelow }))
  const below =
    raw < 0n
      ? await thawOldest(tx, asset, { below: block, raw: -raw }, most)
      : await freezeOlder(tx, asset, { below: block, raw }, most)
  if (below.isPart) return block
  let [from, rawRest] = [block, atLeastZero(rawLeft - rawBelow)]
  for (let rest = most - below.count; rest > 0; ) {
    const { rows, isPart } = await wholeBlocks(Math.min(pageMax, rest), (some) =>
      listTaintedFrom(tx, asset, from, some),
    )
    const shared = distribute(rawRest, rows)
    await updateFrozen(tx, asset, shared.changed)
    if (!isPart) return undefined
    rawRest = shared.rawRest
    rest -= rows.length
    from = (rows.at(-1)?.block ?? from) + 1n
  }
  return from
}

/** An amount in blocks below this one. */
interface AmountBelow {
  readonly below: bigint
  readonly raw: bigint
}

/** The frozen amount of the rows below a block, which received this tainted amount: all of what came after the oldest frozen row is frozen. */
async function sumFrozen(tx: Tx, asset: WalletToken, { below, raw }: AmountBelow): Promise<bigint> {
  const [oldest] = await listOldestFrozen(tx, asset, below, 1)
  if (oldest === undefined) return 0n
  return raw - (await sumTaint(tx, asset, oldest)) + oldest.rawFrozen
}

/** The number of rows that a step has read, and whether it ended before the whole amount was moved. */
interface Moved {
  readonly count: number
  readonly isPart: boolean
}

/** Takes this amount from the frozen amounts below a block, those of the oldest rows first. */
async function thawOldest(tx: Tx, asset: WalletToken, { below, raw }: AmountBelow, most: number): Promise<Moved> {
  let [rest, count] = [raw, 0]
  while (rest > 0n) {
    if (count >= most) return { count, isPart: true }
    const rows = await listOldestFrozen(tx, asset, below, Math.min(pageMax, most - count))
    if (rows.length === 0) break
    const changed = new Map<string, bigint>()
    for (const { id, rawFrozen } of rows) {
      if (rest === 0n) break
      const thawed = lower(rawFrozen, rest)
      rest -= thawed
      changed.set(id, rawFrozen - thawed)
    }
    await updateFrozen(tx, asset, changed)
    count += rows.length
  }
  return { count, isPart: false }
}

/** Freezes a further amount of the tainted rows below a block, newest first. It starts at the oldest frozen row, because all newer rows are frozen completely. */
async function freezeOlder(tx: Tx, asset: WalletToken, { below, raw }: AmountBelow, most: number): Promise<Moved> {
  if (raw === 0n) return { count: 0, isPart: false }
  let rows = await listOldestFrozen(tx, asset, below, 1)
  let [rest, count, last] = [raw, 0, rows.at(-1)]
  for (;;) {
    const changed = new Map<string, bigint>()
    for (const { id, rawTaint, rawFrozen } of rows) {
      const added = lower(atLeastZero(rawTaint - rawFrozen), rest)
      rest -= added
      if (added > 0n) changed.set(id, rawFrozen + added)
    }
    await updateFrozen(tx, asset, changed)
    count += rows.length
    if (rest === 0n) return { count, isPart: false }
    if (count >= most) return { count, isPart: true }
    rows = await listTaintedBelow(tx, asset, last ?? below, Math.min(pageMax, most - count))
    if (rows.length === 0) return { count, isPart: false }
    last = rows.at(-1)
  }
}

/**
 * Distributes an amount that left over tainted rows, oldest first; the rest of each row is frozen. Returns the rows whose frozen amount changes, and
 * the remainder for newer rows.
 */
export function distribute(
  rawLeft: bigint,
  rows: readonly Pick<TaintedRow, 'id' | 'rawTaint' | 'rawFrozen'>[],
): { readonly changed: ReadonlyMap<string, bigint>; readonly rawRest: bigint } {
  const changed = new Map<string, bigint>()
  let rest = rawLeft
  for (const { id, rawTaint, rawFrozen } of rows) {
    const share = lower(rawTaint, rest)
    rest -= share
    if (rawTaint - share !== rawFrozen) changed.set(id, rawTaint - share)
  }
  return { changed, rawRest: rest }
}

/** The amount, or 0 below it. */
function atLeastZero(raw: bigint): bigint {
  return raw > 0n ? raw : 0n
}

export function lower(one: bigint, other: bigint): bigint {
  return one < other ? one : other
}
