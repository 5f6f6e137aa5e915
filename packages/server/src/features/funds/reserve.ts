import type { Tx } from '../../platform/db/db.ts'
import { feeInToken, feeOfGas } from './fees.ts'
import type { Ctx } from './ports.ts'
import { type Place, type Snapshot, snapshotMsMax, spendableOf } from './snapshot.ts'

/** The amount that one step takes from one place. */
export interface Want {
  readonly place: Place
  readonly rawAmount: bigint
  readonly gasLimit: bigint
  readonly dataBytes: number
}

/** The reservation that one subject requests, evaluated against the snapshot of its plan. */
export interface Claim {
  readonly snapshot: Snapshot
  readonly wants: readonly Want[]
  /** Amount that the subject adds to a place before it takes from it: a gas top-up. */
  readonly brings?: { readonly place: Place; readonly rawAmount: bigint } | undefined
}

/**
 * Whether each claim is covered by the balances of its snapshot less all other reservations. Claims are evaluated in order: each covered
 * claim counts against the later ones. Call it under the owners' locks (`lockOwners`), in the transaction that inserts the reservations. A
 * snapshot older than `snapshotMsMax` covers nothing.
 */
export async function areCovered(
  ctx: Pick<Ctx, 'deposits'>,
  tx: Tx,
  claims: readonly Claim[],
): Promise<readonly boolean[]> {
  const seen = new Map<Snapshot, Map<string, Place>>()
  for (const { snapshot, wants } of claims) {
    const places = seen.get(snapshot) ?? new Map<string, Place>()
    seen.set(snapshot, places)
    for (const { place } of wants) places.set(nameOf(place), place)
  }
  const each = [...seen].flatMap(([snapshot, places]) =>
    [...places].map(([name, place]) => ({ snapshot, name, place })),
  )
  const amounts = await spendableOf(tx, ctx, each)
  const oldest = Math.max(...amounts.map(({ readAt }) => readAt.getTime())) - snapshotMsMax
  const available = new Map<Snapshot, Map<string, bigint>>()
  for (const [index, { snapshot, name }] of each.entries()) {
    const own = available.get(snapshot) ?? new Map<string, bigint>()
    available.set(snapshot, own.set(name, amounts[index]?.available ?? 0n))
  }
  const taken = new Map<string, bigint>()
  return claims.map(({ snapshot, wants, brings }) => {
    const needs = new Map<string, bigint>()
    for (const want of wants) add(needs, nameOf(want.place), maxCostOf(want, snapshot))
    const covers = ([name, need]: readonly [string, bigint]): boolean => {
      const own = brings !== undefined && nameOf(brings.place) === name ? need - brings.rawAmount : need
      return own <= 0n || own <= (available.get(snapshot)?.get(name) ?? 0n) - (taken.get(name) ?? 0n)
    }
    if (snapshot.readAt.getTime() < oldest || ![...needs].every(covers)) return false
    for (const [name, need] of needs) add(taken, name, need)
    return true
  })
}

function add(sums: Map<string, bigint>, name: string, amount: bigint): void {
  sums.set(name, (sums.get(name) ?? 0n) + amount)
}

function nameOf({ network, owner, coin }: Place): string {
  return `${network.name} ${owner} ${coin.symbol}`
}

/** Maximum cost in the smallest unit of the place's coin. */
function maxCostOf({ place: { network, coin }, rawAmount, gasLimit, dataBytes }: Want, { fees }: Snapshot): bigint {
  if (gasLimit === 0n) return rawAmount
  if (network.nativeCoin === null) return rawAmount + feeInToken(gasLimit, fees.maxFee, coin.decimals)
  return rawAmount + feeOfGas({ gasLimit, dataBytes }, fees)
}

const contendedMsMax = 10_000

/** Marks a temporary refusal: another request reserved the money after the snapshot was read. */
export const contended = new Error('another request reserved the money since it was read')

/**
 * Retries work with a new snapshot while other requests reserve the money first, for at most ten seconds. The final refusal is about the
 * real balance. Each retry follows a reservation of another request, so one of several always succeeds.
 */
export async function retryOnContention<T>({ clock }: Pick<Ctx, 'clock'>, work: () => Promise<T>): Promise<T> {
  const until = clock.now().getTime() + contendedMsMax
  for (;;) {
    try {
      return await work()
    } catch (error) {
      const isContended = error instanceof Error && error.cause === contended
      if (!isContended || clock.now().getTime() >= until) throw error
    }
  }
}
