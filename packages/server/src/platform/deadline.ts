/** The time limit of a request. It is a plain timer, because an `AbortController` takes 2 µs of each webhook delivery. */
export interface Deadline {
  readonly isOver: boolean
  /** Called once at the deadline, unless canceled. Replaces the function that was set before. */
  onOver: (() => void) | undefined
  cancel(): void
}

/** Starts a deadline after this many milliseconds. */
export function startDeadline(ms: number): Deadline {
  let isOver = false
  const timer = setTimeout(() => {
    isOver = true
    deadline.onOver?.()
  }, ms)
  const deadline: Deadline = {
    get isOver() {
      return isOver
    },
    onOver: undefined,
    cancel() {
      deadline.onOver = undefined
      clearTimeout(timer)
    },
  }
  return deadline
}
