import { gasOf, gasOfAuthorization } from '../relayer/index.ts'
import type { StoredSettlement } from './store.ts'

/**
 * Returns the most gas that one payment costs the operator, without the base cost of its transaction; charged to the day's
 * budget.
 */
export function gasOfSettlement(settlement: StoredSettlement): bigint {
  if (settlement.kind === 'tempo') return BigInt(settlement.sponsoredGas)
  return settlement.kind === 'permit2' ? gasOf(settlement) : gasOfAuthorization(settlement)
}
