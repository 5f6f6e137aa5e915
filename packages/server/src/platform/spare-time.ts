import { performance } from 'node:perf_hooks'

/** Least time, in milliseconds, over which the event loop is measured. */
const measuredMsMin = 100
/** The greatest part of the time for which the event loop of a process with time to spare is busy. */
const busyMax = 0.6

/**
 * Returns a function that says whether the event loop of this process had time to spare when it was measured last: at the call, or less than 100 ms
 * before it. A process that did not get a processor counts as busy.
 */
export function measureSpareTime(): () => boolean {
  let before = performance.eventLoopUtilization()
  let measuredAt = performance.now()
  let hasSpareTime = false
  return () => {
    if (performance.now() - measuredAt < measuredMsMin) return hasSpareTime
    const now = performance.eventLoopUtilization()
    hasSpareTime = performance.eventLoopUtilization(now, before).utilization <= busyMax
    before = now
    measuredAt = performance.now()
    return hasSpareTime
  }
}
