import { PurserError } from '@purser/sdk'
import { useState } from 'react'

const inUse = new Set(['idempotency-key-reused', 'idempotency-in-progress'])

/**
 * The Idempotency-Key of a dialog's action, so that a second press, or a press after a lost response, has no second
 * effect. After a refusal (4xx), which the service replays for its key, the next press gets a new key. After an unknown
 * outcome the key stays.
 */
export function useIdempotencyKey(): { readonly key: string; readonly onError: (error: unknown) => void } {
  const [key, setKey] = useState(() => crypto.randomUUID())
  const onError = (error: unknown) => {
    if (!(error instanceof PurserError) || error.status === undefined || error.status >= 500) return
    if (!inUse.has(error.code)) setKey(crypto.randomUUID())
  }
  return { key, onError }
}
