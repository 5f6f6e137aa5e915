import type { NetworkName } from '@purser/protocol'
import { type Clock, instantOf } from '../../../platform/clock.ts'
import type { Queryable } from '../../../platform/db/db.ts'
import { pause } from '../../../platform/work/loop.ts'
import { findBookedTo } from '../screening/deposit-store.ts'

const pollMs = 50

/** Returns a function that waits until the deposits of a block are booked, for `msMax` milliseconds at most, and returns whether they are. */
export function createBookedInTime({
  clock,
  waitMs = (ms) => pause(ms, new AbortController().signal),
}: {
  readonly clock: Clock
  readonly waitMs?: (ms: number) => Promise<void>
}) {
  return async (
    db: Queryable,
    network: NetworkName,
    { block, msMax }: { readonly block: bigint; readonly msMax: number },
  ): Promise<boolean> => {
    const until = instantOf(clock.now().getTime() + msMax)
    for (;;) {
      const bookedTo = await findBookedTo(db, network)
      if (bookedTo !== undefined && bookedTo >= block) return true
      if (clock.now() >= until) return false
      await waitMs(pollMs)
    }
  }
}
