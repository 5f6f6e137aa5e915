import type { Db } from './db.ts'

/** How many one round carries and how many rounds may be under way at once. */
export interface GatherLimits {
  readonly itemsMax: number
  readonly roundsMax: number
}

interface Waiting<I, O> {
  readonly item: I
  readonly resolve: (value: O) => void
  readonly reject: (error: unknown) => void
}

/**
 * Gathers what concurrent requests ask for into rounds, so that one statement or one call to a node serves them all.
 * A lone request waits for nobody: a round starts on the next turn of the loop unless `roundsMax` are under way, and
 * while they are, the next one fills. `run` answers in the order of its items; a round that throws fails its own items.
 */
export function gather<I, O>(
  limits: GatherLimits,
  run: (items: readonly I[]) => Promise<readonly O[]>,
): (item: I) => Promise<O> {
  let waiting: Waiting<I, O>[] = []
  let roundsOpen = 0
  let scheduled = false

  const start = (): void => {
    scheduled = false
    while (waiting.length > 0 && roundsOpen < limits.roundsMax) {
      const round = waiting.slice(0, limits.itemsMax)
      waiting = waiting.slice(limits.itemsMax)
      roundsOpen += 1
      void settle(round)
    }
  }
  const settle = async (round: readonly Waiting<I, O>[]): Promise<void> => {
    try {
      const answers = await run(round.map((entry) => entry.item))
      round.forEach((entry, index) => {
        const answer = answers[index]
        if (index < answers.length) entry.resolve(answer as O)
        else entry.reject(new Error('a gathered round answered fewer items than it was given'))
      })
    } catch (error) {
      for (const entry of round) entry.reject(error)
    } finally {
      roundsOpen -= 1
      if (waiting.length > 0) start()
    }
  }
  return (item) =>
    new Promise((resolve, reject) => {
      waiting.push({ item, resolve, reject })
      if (scheduled || roundsOpen >= limits.roundsMax) return
      scheduled = true
      setImmediate(start)
    })
}

/** The same for what is asked of a database, each of which has rounds of its own. */
export function gatherByDb<I, O>(
  limits: GatherLimits,
  run: (db: Db, items: readonly I[]) => Promise<readonly O[]>,
): (db: Db, item: I) => Promise<O> {
  const gathered = new WeakMap<Db, (item: I) => Promise<O>>()
  return (db, item) => {
    const known = gathered.get(db) ?? gather<I, O>(limits, (items) => run(db, items))
    gathered.set(db, known)
    return known(item)
  }
}
