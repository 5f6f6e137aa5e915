import type { Arguments } from './request.ts'
import type { Tool } from './tool.ts'

/** Generated Idempotency-Keys of calls whose outcome the caller has not seen. */
export interface OpenKeys {
  /**
   * The key for this call: the key of an equal open call, otherwise a new one. Undefined if too many calls are open.
   */
  readonly open: (tool: Tool, args: Arguments) => string | undefined
  /** Forgets the key: the caller knows the outcome, so an equal call is a new one. */
  readonly close: (tool: Tool, args: Arguments) => void
  /** Whether the outcome of every call is known. */
  readonly isEmpty: () => boolean
}

/** The service keeps a key for the same time. */
const openMsMax = 24 * 60 * 60 * 1_000
const openCallsMax = 1_000

/**
 * Remembers, in memory, the key of each call until its outcome has reached the caller. If a client stops waiting and
 * repeats the call without a key, it gets the outcome of the first call; with a new key it would pay twice.
 */
export function openKeys(now: () => number, fresh: () => string): OpenKeys {
  const opened = new Map<string, { readonly key: string; readonly at: number }>()
  return {
    open(tool, args) {
      for (const [call, { at }] of opened) if (now() - at >= openMsMax) opened.delete(call)
      const call = callOf(tool, args)
      const known = opened.get(call)
      if (known !== undefined) return known.key
      if (opened.size >= openCallsMax) return undefined
      const key = fresh()
      opened.set(call, { key, at: now() })
      return key
    },
    close: (tool, args) => void opened.delete(callOf(tool, args)),
    isEmpty: () => opened.size === 0,
  }
}

/** A text that identifies a call, whatever the order of its arguments. */
function callOf({ name }: Tool, args: Arguments): string {
  return JSON.stringify([name, sorted(args)])
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).filter(([, inner]) => inner !== undefined)
  return entries.sort(([left], [right]) => (left < right ? -1 : 1)).map(([name, inner]) => [name, sorted(inner)])
}
