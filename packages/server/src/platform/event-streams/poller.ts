import { setImmediate as turn } from 'node:timers/promises'
import type { Log } from '../log.ts'

/** Milliseconds between two reads of the table for all streams; events of other processes arrive with at most this delay. */
const pollMs = 200
/** After a slow read the pause is this many times what reading and sending took, so that neither the database nor the process is overloaded. */
const pauseFactor = 4
const retryMs = 2_000

/** A finished read: whether there is more to read at once, and what sends its events to the streams. */
export interface Read {
  readonly isMore: boolean
  send(): Promise<void>
}

export interface PollerParts {
  readonly log: Log
  /** The log message of a failed read, which is retried. */
  readonly failure: string
  /** Whether any stream is open: the timer does not run without one. */
  isNeeded(): boolean
  /** Reads for all streams. */
  readAll(): Promise<Read | undefined>
  /** Reads for the streams that were woken. */
  readWoken?(): Promise<Read | undefined>
}

export interface Poller {
  /** Starts the timer if it does not run. */
  start(): void
  /** Reads for all streams now. Never throws. */
  pollAll(): void
  /** Reads for the woken streams now. Never throws. */
  pollWoken(): void
  /** Stops reading forever; resolves when the current read has been sent. */
  stop(): Promise<void>
}

/**
 * Reads a table for the open streams of this process: for all of them five times a second, and at once when this process wrote
 * events. Reads never overlap.
 */
export function createPoller({ log, failure, isNeeded, readAll, readWoken = readAll }: PollerParts): Poller {
  let isAllDue = false
  let isWokenDue = false
  let isStopped = false
  let running: Promise<void> | undefined
  let timer: NodeJS.Timeout | undefined

  function pause(ms: number): void {
    clearTimeout(timer)
    timer = isNeeded() && !isStopped ? setTimeout(pollAll, ms).unref() : undefined
  }

  function pollAll(): void {
    isAllDue = true
    if (!isStopped) running ??= run()
  }

  function pollWoken(): void {
    isWokenDue = true
    if (!isStopped) running ??= run()
  }

  async function run(): Promise<void> {
    // Wake-ups come in bursts, of one transaction or of many: they share a statement.
    await turn()
    try {
      while (!isStopped && (isAllDue || isWokenDue)) await readOnce()
    } catch (error) {
      log.warn({ err: error }, failure)
      pause(retryMs)
    }
    running = undefined
  }

  /** Reads for all streams if that is due, otherwise for those that were woken. */
  async function readOnce(): Promise<void> {
    const isAll = isAllDue
    isAllDue = false
    isWokenDue = false
    const began = performance.now()
    const read = await (isAll ? readAll() : readWoken())
    if (read?.isMore === true) isAllDue = true
    await read?.send()
    if (isAll && read?.isMore !== true) pause(Math.max(pollMs, pauseFactor * (performance.now() - began)))
  }

  return {
    start() {
      if (timer === undefined) pause(pollMs)
    },
    pollAll,
    pollWoken,
    async stop() {
      isStopped = true
      clearTimeout(timer)
      await running
    },
  }
}
