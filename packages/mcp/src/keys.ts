import type { Arguments } from './request.ts'
import type { Tool } from './tool.ts'

/** The Idempotency-Keys that were made up for calls whose end the caller has not seen. */
export interface OpenKeys {
  /** The key for this call: that of an equal call which is still open, otherwise a new one. Undefined where too many are open. */
  readonly open: (tool: Tool, given: Arguments) => string | undefined
  /** The caller knows the outcome, so an equal call is a new one. */
  readonly close: (tool: Tool, given: Arguments) => void
}

/** As long as the service keeps a key. */
const openMsMax = 24 * 60 * 60 * 1_000
const openCallsMax = 1_000

/**
 * Remembers, in memory, the key of each call until its outcome reached the caller. A client that gives up waiting and asks the same again
 * without a key is then answered with the first call's outcome; with a fresh key it would pay a second time.
 */
export function openKeys(now: () => number, fresh: () => string): OpenKeys {
  const opened = new Map<string, { readonly key: string; readonly at: number }>()
  return {
    open(tool, given) {
      for (const [call, { at }] of opened) if (now() - at >= openMsMax) opened.delete(call)
      const call = callOf(tool, given)
      const known = opened.get(call)
      if (known !== undefined) return known.key
      if (opened.size >= openCallsMax) return undefined
      const key = fresh()
      opened.set(call, { key, at: now() })
      return key
    },
    close: (tool, given) => void opened.delete(callOf(tool, given)),
  }
}

/** The same text for the same call, in whatever order its arguments come. */
function callOf({ name }: Tool, given: Arguments): string {
  return JSON.stringify([name, sorted(given)])
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).filter(([, inner]) => inner !== undefined)
  return entries.sort(([left], [right]) => (left < right ? -1 : 1)).map(([name, inner]) => [name, sorted(inner)])
}
