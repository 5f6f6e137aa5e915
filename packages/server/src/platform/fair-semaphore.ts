import { mayTakeShared } from './share.ts'
import { type WaitLimits, waitForSlot } from './waiting-queue.ts'

/**
 * Limits concurrent work, and divides it fairly between owners. An owner may use half of the slots that the others leave (`mayTakeShared`), and
 * waiting owners are served in turn. An eighth of the slots is reserved for owners that use none.
 */
export interface FairSemaphore {
  /**
   * Waits for a slot, and returns the function that releases it. With `until` it waits without a limit until that signal is aborted, and
   * then throws the signal's reason.
   */
  take(owner: string, until?: AbortSignal): Promise<() => void>
  /** The number of waiters of all owners. */
  waiting(): number
}

interface OwnerSlots {
  own: number
  readonly waiting: Set<() => void>
}

/** Creates a semaphore with `max` slots. Without `patience`, callers wait until their turn comes. */
export function createFairSemaphore(max: number, patience?: WaitLimits): FairSemaphore {
  const owners = new Map<string, OwnerSlots>()
  let taken = 0
  const isFree = ({ own }: OwnerSlots): boolean => mayTakeShared({ own, taken, max })

  const take = (slots: OwnerSlots): void => {
    slots.own += 1
    taken += 1
  }
  /** Gives free slots to waiters. An owner that was served moves to the end, so that the next free slot is another's. */
  const serve = (): void => {
    for (const [owner, slots] of owners) {
      const [next] = slots.waiting
      if (next === undefined || !isFree(slots)) continue
      take(slots)
      next()
      owners.delete(owner)
      owners.set(owner, slots)
    }
  }
  const forgetIdle = (owner: string, slots: OwnerSlots): void => {
    if (slots.own === 0 && slots.waiting.size === 0) owners.delete(owner)
  }
  const releaseOnce = (owner: string, slots: OwnerSlots): (() => void) => {
    let isReleased = false
    return () => {
      if (isReleased) return
      isReleased = true
      slots.own -= 1
      taken -= 1
      forgetIdle(owner, slots)
      serve()
    }
  }
  return {
    async take(owner, until) {
      const slots = owners.get(owner) ?? { own: 0, waiting: new Set() }
      owners.set(owner, slots)
      if (slots.waiting.size === 0 && isFree(slots)) take(slots)
      else await waitForSlot(slots.waiting, until ?? patience).finally(() => forgetIdle(owner, slots))
      return releaseOnce(owner, slots)
    },
    waiting: () => [...owners.values()].reduce((sum, { waiting }) => sum + waiting.size, 0),
  }
}
