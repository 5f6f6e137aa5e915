import type { Environment } from '../../platform/ctx.ts'
import type { OracleAnswer, Screened } from './port.ts'

export interface Evidence {
  readonly isListed: boolean
  readonly isListStale: boolean
  readonly oracle: OracleAnswer
}

/**
 * Decides the result. Evidence against an address always counts, also from a stale list. Clearing an address needs a fresh list and an oracle's
 * answer. In the test environment, a deployment without a mainnet node needs only the list.
 */
export function verdictOf({ isListed, isListStale, oracle }: Evidence, environment: Environment): Screened {
  if (isListed) return { result: 'flagged', reason: 'listed', oracle }
  if (oracle === 'sanctioned') return { result: 'flagged', reason: 'oracle-sanctioned', oracle }
  if (isListStale) return { result: 'pending', reason: 'list-stale', oracle }
  if (oracle === 'failed') return { result: 'pending', reason: 'oracle-failed', oracle }
  if (oracle === 'unknown') return { result: 'pending', reason: 'oracle-unknown', oracle }
  if (oracle === 'none' && environment === 'live') return { result: 'pending', reason: 'oracle-not-configured', oracle }
  return { result: 'clear', reason: 'clean', oracle }
}
