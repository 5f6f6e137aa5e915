import { createSemaphores } from '../../platform/semaphores.ts'
import type { Freed } from './unmined.ts'

/** Milliseconds between two attempts to free places or gas of one organisation, after one that could not. */
const pauseMs = 5_000
/** Most names that a process keeps; above it the pauses are cleared, which only costs reads. */
const namesMax = 10_000

/** An attempt to free what a new payment lacks, and to record the payment then. */
export interface Attempt<T> {
  /** Attempts that free the same payments share it. */
  readonly name: string
  readonly payer: string | null
  /** The places or the gas that the new payment needs for itself. */
  readonly own: bigint
  readonly nowMs: number
  readonly free: () => Promise<Freed>
  readonly record: () => Promise<T>
}

interface Pause {
  readonly untilMs: number
  /** A payment that needs less is not paused. */
  readonly own: bigint
}

/**
 * Pauses attempts after one that freed too little, since the next would read all payments again. Attempts of other payers are paused only where their payments
 * would free too little as well. Returns the result of recording, or `undefined` if nothing was freed.
 */
export function pausing<T>(): (attempt: Attempt<T>) => Promise<T | undefined> {
  const pauses = new Map<string, Pause>()
  return async ({ name, payer, own, nowMs, free, record }) => {
    const ofPayer = `${name}/${payer}`
    const isPaused = (key: string): boolean => {
      const pause = pauses.get(key)
      return pause !== undefined && pause.untilMs > nowMs && own >= pause.own
    }
    if (isPaused(name) || isPaused(ofPayer)) return undefined
    const freed = await free()
    if (pauses.size >= namesMax) pauses.clear()
    const pause = { untilMs: nowMs + pauseMs, own }
    if (freed === 'too-little') pauses.set(name, pause)
    else if (freed === 'too-little-for-payer') pauses.set(ofPayer, pause)
    else pauses.delete(name)
    return freed === 'some' ? record() : undefined
  }
}

/**
 * Makes attempts of one name one after the other: each finds what the one before freed and recorded, so that concurrent payments free no more than they
 * need together.
 */
export function inTurn<T>(make: (attempt: Attempt<T>) => Promise<T | undefined>): typeof make {
  const withSemaphores = createSemaphores(1)
  return (attempt) => withSemaphores([{ name: attempt.name, widthMax: 1 }], () => make(attempt))
}
