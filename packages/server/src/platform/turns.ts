import { mayTake } from './share.ts'
import { type Patience, waitForPlace } from './waiting-queue.ts'

/**
 * Limits concurrent work, and divides it fairly between owners. An owner may use half of the slots that the others leave (`mayTake`), and
 * waiting owners are served in turn. An eighth of the slots is reserved for owners that use none.
 */
export interface Turns {
  /**
   * Waits for a slot, and returns the function that releases it. With `until` it waits without a limit until that signal is aborted, and
   * then throws the signal's reason.
   */
  take(owner: string, until?: AbortSignal): Promise<() => void>
  /** The number of waiters of all owners. */
  waiting(): number
}

/** The part of the places from which only owners without one take. */
const firstPart = 8

interface OwnerPlaces {
  own: number
  readonly waiting: Set<() => void>
}

/** Creates places for `max` pieces of work at once. Without a patience, one waits until its turn comes. */
export function createTurns(max: number, patience?: Patience): Turns {
  const owners = new Map<string, OwnerPlaces>()
  const shared = max - Math.floor(max / firstPart)
  let taken = 0
  const isFree = ({ own }: OwnerPlaces): boolean => mayTake({ own, taken, max: own === 0 ? max : shared })

  const take = (places: OwnerPlaces): void => {
    places.own += 1
    taken += 1
  }
  /** Gives free places to waiters. The owner that was served goes to the end, so that the next free place is another's. */
  const serve = (): void => {
    for (const [owner, places] of owners) {
      const [next] = places.waiting
      if (next === undefined || !isFree(places)) continue
      take(places)
      next()
      owners.delete(owner)
      owners.set(owner, places)
    }
  }
  const forgetIdle = (owner: string, places: OwnerPlaces): void => {
    if (places.own === 0 && places.waiting.size === 0) owners.delete(owner)
  }
  const releaseOnce = (owner: string, places: OwnerPlaces): (() => void) => {
    let isReleased = false
    return () => {
      if (isReleased) return
      isReleased = true
      places.own -= 1
      taken -= 1
      forgetIdle(owner, places)
      serve()
    }
  }
  return {
    async take(owner, until) {
      const places = owners.get(owner) ?? { own: 0, waiting: new Set() }
      owners.set(owner, places)
      if (places.waiting.size === 0 && isFree(places)) take(places)
      else await waitForPlace(places.waiting, until ?? patience).finally(() => forgetIdle(owner, places))
      return releaseOnce(owner, places)
    },
    waiting: () => [...owners.values()].reduce((sum, { waiting }) => sum + waiting.size, 0),
  }
}
