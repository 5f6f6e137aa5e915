import { isProblem } from '../../platform/errors.ts'
import { pause } from '../../platform/work/loop.ts'
import { fail } from '../errors.ts'
import type { Rpc, Wait } from './rpc.ts'

/** Milliseconds for which a node searches alone before the next one begins too. */
const aloneMs = 2_000
/** Milliseconds for which the remaining nodes may search once a majority has found nothing. */
const remainingMs = 600_000
/** Milliseconds that a search of several nodes may take. */
const searchMsMax = 3_600_000

interface NodeSearch<T> {
  /** Number of nodes that are a majority of those configured. */
  readonly needed: number
  readonly wait: Wait | undefined
  /** Once it is aborted, the search ends at every node. */
  readonly until?: AbortSignal | undefined
  /** Called when a majority has found nothing and other nodes still search. */
  readonly onRemaining?: (() => void) | undefined
  /**
   * Searches one node. Undefined when it has nothing. Once the signal is aborted the result is not used, and the search should end with an error.
   */
  readonly search: (rpc: Rpc, stopped: AbortSignal) => Promise<T | undefined>
}

/**
 * Returns the first result of any node, so that no node can delay what another one finds. The nodes begin one after the other: each when the one before it
 * has ended without a result, or after two seconds. Undefined when every node that did not fail has ended without a result; a node that has not ended
 * ten minutes after a majority counts as failed. Throws `chain-unavailable` when all nodes failed, when no majority has ended within an hour, or once
 * `until` is aborted; throws any other error of a search at once.
 */
export function searchNodes<T>(
  nodes: readonly Rpc[],
  { needed, wait = pause, until, onRemaining, search }: NodeSearch<T>,
): Promise<T | undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<T | undefined>()
  const stopping = new AbortController()
  const { signal: stopped } = stopping
  const failures: unknown[] = []
  let empty = 0
  const waitForRemaining = (): void => {
    onRemaining?.()
    void wait(remainingMs, stopped).then(() => resolve(undefined))
  }
  const searchOne = async (rpc: Rpc): Promise<void> => {
    try {
      const found = await search(rpc, stopped)
      if (found !== undefined) return resolve(found)
      empty += 1
      if (empty === needed && empty + failures.length < nodes.length) waitForRemaining()
    } catch (error) {
      if (!isProblem(error, 'chain-unavailable')) return reject(error)
      failures.push(error)
    }
    if (empty + failures.length < nodes.length) return
    if (empty === 0) reject(failures[0])
    else resolve(undefined)
  }
  const begin = async (): Promise<void> => {
    for (const rpc of nodes) {
      if (stopped.aborted) return
      await Promise.race([searchOne(rpc), wait(aloneMs, stopped)])
    }
  }
  const stop = () => reject(fail('chain-unavailable', {}, new Error('the search was stopped')))
  until?.addEventListener('abort', stop)
  if (until?.aborted) stop()
  // The other nodes cannot help a single one.
  const late = () => {
    if (empty < needed) reject(fail('chain-unavailable', {}, new Error('most nodes do not end their search')))
  }
  if (nodes.length > 1) void wait(searchMsMax, stopped).then(late)
  void begin()
  return promise.finally(() => {
    until?.removeEventListener('abort', stop)
    stopping.abort()
  })
}
