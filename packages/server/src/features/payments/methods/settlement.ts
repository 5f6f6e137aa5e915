import { gasOf, gasOfAuthorization } from '../../relayer/index.ts'
import type { SettlementOf, StoredSettlement } from '../store.ts'

/** What depends on how a payment is settled. */
interface SettlementRules<S> {
  /** Most gas that one payment costs the operator, without the base cost of its transaction. */
  readonly gasOf: (settlement: S) => bigint
  /** The reason for a payment that ended because its signature expired. */
  readonly expiredReason: string
}

type Kind = StoredSettlement['kind']

/** The rules of each kind of settlement. A method that settles in a new way adds a line. */
const rules: { readonly [K in Kind]: SettlementRules<SettlementOf<K>> } = {
  eip3009: {
    gasOf: gasOfAuthorization,
    expiredReason: 'invalid_exact_evm_payload_authorization_valid_before',
  },
  permit2: { gasOf, expiredReason: 'permit2_deadline_expired' },
  tempo: { gasOf: ({ sponsoredGas }) => BigInt(sponsoredGas), expiredReason: 'transaction_expired' },
}

/** Returns the gas that is charged to the day's budget for a payment. */
export function gasOfSettlement<K extends Kind>(settlement: SettlementOf<K>): bigint {
  return rules[settlement.kind].gasOf(settlement)
}

/** Returns the protocol's reason for a payment whose signature expired. */
export function expiredReasonOf({ kind }: Pick<StoredSettlement, 'kind'>): string {
  return rules[kind].expiredReason
}
