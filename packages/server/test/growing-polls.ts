import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'vitest'

const intervalMs = { first: 50, last: 200 }

/** Marks the function, so that a process that runs this file twice replaces it once. */
const mark = Symbol.for('purser.growing-polls')

const { poll } = expect

/**
 * `expect.poll` that waits a quarter of the time that it has waited so far, between a first and a last interval, unless the test gives an interval.
 * A read is a request of some 5 ms of CPU: a test that waits for two seconds makes 14 instead of 20, and one that waits for a moment ends as soon
 * as before.
 */
const growing: typeof poll = (read, options = {}) => {
  if (options.interval !== undefined) return poll(read, options)
  let beganMs: number | undefined
  return poll(
    async (context) => {
      const nowMs = performance.now()
      beganMs ??= nowMs
      await delay(Math.min(intervalMs.last - intervalMs.first, (nowMs - beganMs) / 4))
      return read(context)
    },
    { ...options, interval: intervalMs.first },
  )
}

if (!(mark in poll)) expect.poll = Object.assign(growing, { [mark]: true })
