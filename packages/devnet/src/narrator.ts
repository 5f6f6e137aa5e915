/** What a step found: one line for the reader, and the value for the steps after it. */
export interface Told<T> {
  readonly says: string
  readonly value: T
}

/** Runs a step and prints its line, good or bad. */
export type Step = <T>(title: string, work: () => Promise<Told<T>>) => Promise<T>

/** A step of the story that was not true. */
export class StepFailed extends Error {
  constructor(title: string, cause: unknown) {
    super(`${title}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause })
    this.name = 'StepFailed'
  }
}

/** Numbers the steps and tells each as it ends; the first one that is not true ends the story, and so does the signal. */
export function createNarrator(print: (line: string) => void, signal: AbortSignal): Step {
  let number = 0
  return async (title, work) => {
    number += 1
    try {
      signal.throwIfAborted()
      const { says, value } = await work()
      print(` ✓ ${number}. ${title}\n      ${says}`)
      return value
    } catch (error) {
      print(` ✗ ${number}. ${title}`)
      throw new StepFailed(`step ${number} (${title})`, error)
    }
  }
}

/** Ends the step unless it holds. */
export function expectTrue(holds: boolean, otherwise: string): asserts holds {
  if (!holds) throw new Error(otherwise)
}
