import { performance } from 'node:perf_hooks'

/** Least and longest time, in milliseconds, over which the event loop is measured. An hour ago says nothing of now. */
const [measuredMsMin, measuredMsMax] = [100, 1_000]
/** The greatest part of the time for which the event loop of a process with time to spare is busy. */
const busyMax = 0.6

/**
 * Returns a function that says whether the event loop of this process had time to spare when it was measured last: at the call, or less than 100 ms
 * before it. A process that did not get a processor counts as busy, and so does one whose last measurement began more than a second before.
 */
export function measureSpareTime(): () => boolean {
  let before = performance.eventLoopUtilization()
  let measuredAt = performance.now()
  let hasSpareTime = false
  return () => {
    const measuredMs = performance.now() - measuredAt
    if (measuredMs < measuredMsMin) return hasSpareTime
    const now = performance.eventLoopUtilization()
    const { utilization } = performance.eventLoopUtilization(now, before)
    hasSpareTime = measuredMs <= measuredMsMax && utilization <= busyMax
    before = now
    measuredAt = performance.now()
    return hasSpareTime
  }
}
