const failedReads = new WeakSet<Error>()

/** Notes that an error is of a read, which changes nothing whatever became of it. */
export function noteFailedRead(error: Error): void {
  failedReads.add(error)
}

/** Whether the error is of a read. */
export function isOfRead(error: Error): boolean {
  return failedReads.has(error)
}
