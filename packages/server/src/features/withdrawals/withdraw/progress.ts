import type { PayoutState } from '../../../partners/offramp/port.ts'

const order: Readonly<Record<PayoutState, number>> = {
  pending_conversion: 0,
  conversion_complete: 1,
  completed: 2,
  failed: 3,
}

/**
 * Compares a partner's status with the stored one. `same`: no change. `forward`: it progressed. `returned`: paid money came back, so a
 * completed withdrawal failed after all. `stale`: an older status, from a slow or repeated message; it changes nothing. A failed withdrawal
 * stays failed.
 */
export function progressOf(known: PayoutState, seen: PayoutState): 'same' | 'forward' | 'returned' | 'stale' {
  if (known === seen) return 'same'
  if (known === 'failed' || order[seen] < order[known]) return 'stale'
  return known === 'completed' ? 'returned' : 'forward'
}
