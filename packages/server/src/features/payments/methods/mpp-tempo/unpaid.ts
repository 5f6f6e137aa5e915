import { refusedMpp } from '../../mpp/refused.ts'
import type { PaymentRow } from '../../store.ts'
import { sentenceOf } from './outcome.ts'

/**
 * Refuses a payment by a transaction that the chain or the node refused: the first response and every repeat must be the same.
 */
export function refuseUnpaid(row: Pick<PaymentRow, 'settlement' | 'status' | 'failureReason'>): void {
  if (row.settlement?.kind !== 'tempo' || row.status === 'settled' || row.failureReason === null) return
  throw refusedMpp('verification-failed', sentenceOf(row.failureReason))
}
