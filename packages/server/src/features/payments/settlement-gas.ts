import { gasOf, gasOfAuthorization } from '../relayer/index.ts'
import type { StoredSettlement } from './store.ts'

/** Gas that one payment costs the operator at most, beside the transaction that carries it; the day's budget is charged with it. */
export function gasOfSettlement(settlement: StoredSettlement): bigint {
  if (settlement.kind === 'tempo') return BigInt(settlement.sponsoredGas)
  return settlement.kind === 'permit2' ? gasOf(settlement) : gasOfAuthorization(settlement)
}
