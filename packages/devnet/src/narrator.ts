/** The result of a step: one line for the reader, and the value for later steps. */
interface StepResult<T> {
  readonly summary: string
  readonly value: T
}

/** Runs a step and prints its line, good or bad. */
export type Step = <T>(title: string, work: () => Promise<StepResult<T>>) => Promise<T>

/** A step of the demo that failed. */
class StepFailed extends Error {
  constructor(title: string, cause: unknown) {
    super(`${title}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause })
    this.name = 'StepFailed'
  }
}

/** Numbers the steps and prints each as it ends. The first failure ends the demo, and so does the signal. */
export function createNarrator(print: (line: string) => void, signal: AbortSignal): Step {
  let number = 0
  return async (title, work) => {
    number += 1
    try {
      signal.throwIfAborted()
      const { summary, value } = await work()
      print(` ✓ ${number}. ${title}\n      ${summary}`)
      return value
    } catch (error) {
      print(` ✗ ${number}. ${title}`)
      throw new StepFailed(`step ${number} (${title})`, error)
    }
  }
}

/** Throws unless the condition is true, and so fails the step. */
export function expectTrue(holds: boolean, otherwise: string): asserts holds {
  if (!holds) throw new Error(otherwise)
}
