const failedReads = new WeakSet<Error>()

/** Marks an error as the error of a read, which changed nothing. */
export function noteFailedRead(error: Error): void {
  failedReads.add(error)
}

/** Whether the error was marked by `noteFailedRead`. */
export function isOfRead(error: Error): boolean {
  return failedReads.has(error)
}
