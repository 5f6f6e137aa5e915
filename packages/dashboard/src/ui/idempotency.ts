import { PurserError } from '@purser/sdk'
import { useState } from 'react'

/** The Idempotency-Key of an action, and whether a press with it may have taken effect. */
export interface ActionKey {
  readonly key: string
  readonly isLost: boolean
}

/**
 * The key for the press after an error. It is new only if no press with the old one can have taken effect. A body that
 * was changed under its key keeps the key too: with a new one the service would take it for another action.
 */
export function keyAfter(before: ActionKey, error: unknown, fresh: () => string): ActionKey {
  if (!(error instanceof PurserError)) return before
  if (!error.isOutcomeKnown) return { ...before, isLost: true }
  const decidesNothing = error.code === 'idempotency-key-reused' || (before.isLost && error.isBeforeKey)
  return decidesNothing ? before : { key: fresh(), isLost: false }
}

/**
 * The Idempotency-Key of a dialog's action, so that a second press, or a press after a lost response, has no second
 * effect. After a refusal, which the service replays for its key, the next press gets a new key. After an unknown
 * outcome the key stays.
 */
export function useIdempotencyKey(): { readonly key: string; readonly onError: (error: unknown) => void } {
  const [action, setAction] = useState<ActionKey>(() => ({ key: crypto.randomUUID(), isLost: false }))
  const onError = (error: unknown) => setAction((before) => keyAfter(before, error, () => crypto.randomUUID()))
  return { key: action.key, onError }
}
