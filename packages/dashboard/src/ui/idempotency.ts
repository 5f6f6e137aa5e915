import { PurserError } from '@purser/sdk'
import { useState } from 'react'

const inUse = new Set(['idempotency-key-reused', 'idempotency-in-progress'])

/**
 * The key of a dialog's one act: a second press, or a press after an answer that was lost, does nothing twice. A refusal did nothing and is
 * kept under its key, so the next press takes another; a key whose first request may have been done never changes.
 */
export function useIdempotencyKey(): { readonly key: string; readonly onError: (error: unknown) => void } {
  const [key, setKey] = useState(() => crypto.randomUUID())
  const onError = (error: unknown) => {
    if (!(error instanceof PurserError) || error.status === undefined || error.status >= 500) return
    if (!inUse.has(error.code)) setKey(crypto.randomUUID())
  }
  return { key, onError }
}
