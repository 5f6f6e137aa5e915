import type { Environment } from '../../platform/ctx.ts'
import type { OracleAnswer, Screened } from './port.ts'

export interface Facts {
  readonly isListed: boolean
  readonly isListStale: boolean
  readonly oracle: OracleAnswer
}

/**
 * The whole rule. Evidence against an address counts whatever else is missing, also from a stale list; for it, only a fresh list and an
 * oracle that answered. Where play money alone is at stake, a deployment without any mainnet node is judged by the list.
 */
export function verdictOf({ isListed, isListStale, oracle }: Facts, environment: Environment): Screened {
  if (isListed) return { result: 'flagged', reason: 'listed', oracle }
  if (oracle === 'sanctioned') return { result: 'flagged', reason: 'oracle-sanctioned', oracle }
  if (isListStale) return { result: 'pending', reason: 'list-stale', oracle }
  if (oracle === 'failed') return { result: 'pending', reason: 'oracle-failed', oracle }
  if (oracle === 'unknown') return { result: 'pending', reason: 'oracle-unknown', oracle }
  if (oracle === 'none' && environment === 'live') return { result: 'pending', reason: 'oracle-not-configured', oracle }
  return { result: 'clear', reason: 'clean', oracle }
}
