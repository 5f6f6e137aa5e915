import type { Chain, NonceState } from '../../chain/port.ts'
import { findUse as findRelayUse, nonceStates, type RelayPayload } from '../relayer/index.ts'
import type { CheckedRow } from './void-store.ts'

/** Returns what the quorum reports for each payment's nonce, in one call to each node for each kind. */
export function statesOf(chain: Chain, rows: readonly CheckedRow[]): Promise<readonly NonceState[]> {
  return nonceStates(chain, rows.map(payloadOf))
}

function payloadOf({ asset, settlement }: CheckedRow): RelayPayload {
  return settlement.kind === 'permit2' ? settlement : { ...settlement, token: asset }
}

/** The transaction that moved the money, or why the nonce was used without it. */
type NonceUse = { readonly txHash: string } | { readonly reason: string } | 'undecided'

export async function findUse(on: Parameters<typeof findRelayUse>[0], row: CheckedRow): Promise<NonceUse> {
  const use = await findRelayUse(on, payloadOf(row), row.createdAt)
  if (use.outcome === 'settled') return { txHash: use.transactionHash }
  return use.outcome === 'lost' ? { reason: use.fault.reason } : 'undecided'
}
