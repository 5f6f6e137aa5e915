/** Waits for the work at most this long, and then throws an error with this message. The work itself goes on. */
export async function within<T>(ms: number, work: Promise<T>, message: string): Promise<T> {
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => late.reject(new Error(message)), ms)
  try {
    return await Promise.race([work, late.promise])
  } finally {
    clearTimeout(timer)
  }
}
