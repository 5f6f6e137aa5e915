import type { PayoutState } from '../../../partners/offramp/port.ts'

const order: Readonly<Record<PayoutState, number>> = {
  pending_conversion: 0,
  conversion_complete: 1,
  completed: 2,
  failed: 3,
}

/**
 * What a partner's word means for what is known. `same`: nothing. `forward`: it went on. `returned`: money that had arrived came back, so
 * a completed withdrawal failed after all. `stale`: an answer from before what is known, which a slow or repeated message can be; it
 * changes nothing. A failed withdrawal stays failed.
 */
export function progressOf(known: PayoutState, seen: PayoutState): 'same' | 'forward' | 'returned' | 'stale' {
  if (known === seen) return 'same'
  if (known === 'failed' || order[seen] < order[known]) return 'stale'
  return known === 'completed' ? 'returned' : 'forward'
}
