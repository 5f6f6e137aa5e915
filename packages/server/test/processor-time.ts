/**
 * Returns the milliseconds for which this thread was busy during some work. Unlike the time of a clock it does not depend on what else the
 * machine does.
 */
export async function processorMs(work: () => unknown): Promise<number> {
  const before = process.threadCpuUsage()
  await work()
  const { user, system } = process.threadCpuUsage(before)
  return (user + system) / 1_000
}
