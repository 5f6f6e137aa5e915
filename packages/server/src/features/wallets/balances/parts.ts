import type { Spendable } from '../../funds/index.ts'

/** Parts of a balance, in its smallest unit. None is negative. */
interface Parts {
  readonly available: bigint
  readonly reserved: bigint
  readonly unscreened: bigint
  readonly frozen: bigint
  readonly notFinal: bigint
}

/**
 * Parts of a balance in the newest block, which add up to it. The funds are those of an earlier block that is deep enough: what arrived
 * since is not final, and what left since was reserved or available there. If holds and reservations exceed the balance, nothing is
 * available.
 */
export function partsOf(balance: bigint, funds: Omit<Spendable, 'readAt'>): Parts {
  let left = balance
  const take = (amount: bigint): bigint => {
    const taken = amount < 0n ? 0n : amount > left ? left : amount
    left -= taken
    return taken
  }
  const frozen = take(funds.frozen)
  const unscreened = take(funds.unscreened)
  const waiting = take(funds.notFinal)
  const arrived = take(left - funds.available - funds.reserved)
  const available = take(funds.available)
  return { available, reserved: left, unscreened, frozen, notFinal: waiting + arrived }
}
