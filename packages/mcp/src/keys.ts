import { createHash } from 'node:crypto'
import type { Arguments } from './request.ts'
import type { Tool } from './tool.ts'

/** Generated Idempotency-Keys of the calls of one API key whose outcome the caller has not seen. */
export interface OpenKeys {
  /**
   * The key for this call: the key of an equal open call, otherwise a new one. Undefined if too many calls are open.
   */
  readonly open: (tool: Tool, args: Arguments) => OpenKey | undefined
  /** Forgets the key: the caller knows the outcome, so an equal call is a new one. */
  readonly close: (tool: Tool, args: Arguments) => void
  /** Forgets the key if no second call has it: the service refused the call before it looked at the key. */
  readonly closeUnshared: (tool: Tool, args: Arguments) => void
}

export interface OpenKey {
  readonly key: string
  /** Whether an earlier call has this key. */
  readonly isShared: boolean
}

/** An API key by a name that is no secret, and the owner of the share to which its use counts. */
export interface KeyOwner {
  readonly name: string
  readonly shareOwner: string
}

interface OpenCall extends OpenKey {
  readonly at: number
  readonly of: KeyOwner
}

/** The service keeps a key for the same time. */
const openMsMax = 24 * 60 * 60 * 1_000
/** Most open calls of an API key, and of all. An owner has at most half of those that the others leave. */
const ofKeyMax = 200
const openMax = 100_000

/**
 * Remembers, in memory, the key of each call until its outcome has reached the caller. If a client stops waiting and
 * repeats the call without a key, it gets the outcome of the first call; with a new key it would pay twice. A call is
 * remembered by its digest, so that the size of its arguments does not matter.
 */
export function openKeys(now: () => number, fresh: () => string): (of: KeyOwner) => OpenKeys {
  const opened = new Map<string, OpenCall>()
  const counts = new Map<string, number>()
  const count = (name: string, more: number): void => {
    const left = (counts.get(name) ?? 0) + more
    if (left === 0) counts.delete(name)
    else counts.set(name, left)
  }
  const forget = (call: string): void => {
    const known = opened.get(call)
    if (known === undefined) return
    opened.delete(call)
    count(known.of.name, -1)
    count(known.of.shareOwner, -1)
  }
  const forgetOld = (): void => {
    for (const [call, { at }] of opened) {
      if (now() - at < openMsMax) return
      forget(call)
    }
  }
  const hasCapacity = ({ name, shareOwner }: KeyOwner): boolean => {
    const own = counts.get(shareOwner) ?? 0
    return (counts.get(name) ?? 0) < ofKeyMax && own < (openMax - (opened.size - own)) / 2
  }
  return (of) => ({
    open(tool, args) {
      forgetOld()
      const call = callOf(of, tool, args)
      const known = opened.get(call)
      if (known !== undefined) {
        const shared = { ...known, isShared: true }
        opened.set(call, shared)
        return shared
      }
      if (!hasCapacity(of)) return undefined
      const made = { key: fresh(), isShared: false, at: now(), of }
      opened.set(call, made)
      count(of.name, 1)
      count(of.shareOwner, 1)
      return made
    },
    close: (tool, args) => forget(callOf(of, tool, args)),
    closeUnshared(tool, args) {
      const call = callOf(of, tool, args)
      if (opened.get(call)?.isShared === false) forget(call)
    },
  })
}

/** The digest of a call of an API key, whatever the order of its arguments. */
function callOf(of: KeyOwner, { name }: Tool, args: Arguments): string {
  return createHash('sha256')
    .update(JSON.stringify([of.name, name, sorted(args)]))
    .digest('base64')
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).filter(([, inner]) => inner !== undefined)
  return entries.sort(([left], [right]) => (left < right ? -1 : 1)).map(([name, inner]) => [name, sorted(inner)])
}
