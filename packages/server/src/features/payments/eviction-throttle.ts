import { createSemaphores } from '../../platform/semaphores.ts'
import type { FreedQuota } from './unmined-payments.ts'

/** Milliseconds between two attempts to free quota of one organisation, after one that freed too little. */
const pauseMs = 5_000
/** Most names that a process keeps; above it the pauses are cleared, which only costs reads. */
const namesMax = 10_000

/** An attempt to free the quota that a new payment exceeds, and to record the payment then. */
export interface Attempt<T> {
  /** Attempts that free the same payments share it. */
  readonly name: string
  readonly payer: string | null
  /** The part of the quota that the new payment needs: one payment, or its gas. */
  readonly own: bigint
  readonly nowMs: number
  readonly free: () => Promise<FreedQuota>
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
export function pauseAfterShortage<T>(): (attempt: Attempt<T>) => Promise<T | undefined> {
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
export function oneAtATime<T>(make: (attempt: Attempt<T>) => Promise<T | undefined>): typeof make {
  const withSemaphores = createSemaphores(1)
  return (attempt) => withSemaphores([{ name: attempt.name, widthMax: 1 }], () => make(attempt))
}
