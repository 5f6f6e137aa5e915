import type { Tx } from '../../../platform/db/db.ts'
import {
  type LedgerRow,
  listLedger,
  listTaintedPlaces,
  type MovedTaint,
  type Place,
  updateFrozen,
  updateTaintedReceivers,
} from './taint-store.ts'

/**
 * Freezes what is left of flagged money at these wallets, and follows what they sent on to other wallets of their organisation. The
 * frozen amount of a wallet is never more than its booked balance. Doing it again changes nothing. The caller holds the network's cursor row, so that
 * one transaction at a time follows the money of a network.
 */
export async function followTaint(tx: Tx, places: readonly Place[]): Promise<void> {
  const waiting = [...(await listTaintedPlaces(tx, places))]
  for (let place = waiting.shift(); place !== undefined; place = waiting.shift()) {
    const { frozen, moved } = traceTaint(await listLedger(tx, place))
    await updateFrozen(tx, place, frozen)
    waiting.push(...(await updateTaintedReceivers(tx, place, moved)))
  }
}

export interface Trace {
  /** What stays frozen of each incoming row, where that is something. */
  readonly frozen: ReadonlyMap<string, bigint>
  /** What of each outgoing row was tainted; zero for the others. */
  readonly moved: readonly MovedTaint[]
}

/**
 * Follows tainted money through a wallet's ledger, given in the order of the chain: clean money leaves first, and what leaves beyond it is
 * tainted, the oldest first.
 */
export function traceTaint(ledger: readonly LedgerRow[]): Trace {
  const frozen = new Map<string, bigint>()
  const moved: MovedTaint[] = []
  let balance = 0n
  let tainted = 0n
  for (const { id, direction, rawAmount, rawTaint, txHash, logIndex } of ledger) {
    if (direction === 'in') {
      balance += rawAmount
      tainted += rawTaint
      if (rawTaint > 0n) frozen.set(id, rawTaint)
      continue
    }
    balance = balance > rawAmount ? balance - rawAmount : 0n
    const excess = tainted > balance ? tainted - balance : 0n
    takeOldest(frozen, excess)
    tainted -= excess
    moved.push({ txHash, logIndex, rawTaint: excess < rawAmount ? excess : rawAmount })
  }
  return { frozen, moved }
}

/** Takes an amount from the oldest entries. */
function takeOldest(frozen: Map<string, bigint>, raw: bigint): void {
  let rest = raw
  for (const [id, amount] of frozen) {
    if (rest === 0n) return
    const taken = amount < rest ? amount : rest
    rest -= taken
    if (taken === amount) frozen.delete(id)
    else frozen.set(id, amount - taken)
  }
}
