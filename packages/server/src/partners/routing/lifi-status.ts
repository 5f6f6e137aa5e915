import { type Address, type Hex, sameAddress } from '@purser/protocol'
import type { RouteRequest, RouteStatus } from './port.ts'

/** LI.FI's `GET /status`, as far as it is relied on. */
export interface LifiStatus {
  readonly status: string
  readonly substatus?: string | null | undefined
  readonly receiving?: LifiReceiving | null | undefined
}

export interface LifiReceiving {
  readonly chainId?: number | undefined
  readonly txHash?: Hex | undefined
  readonly rawAmount?: bigint | undefined
  readonly token?: Address | undefined
}

/** Of a failure: what it means, and whether the money never left or has to come back. */
const failures = new Map<string, { readonly reason: string; readonly refund: 'none' | 'pending' }>([
  ['INSUFFICIENT_ALLOWANCE', { reason: 'The partner was not allowed to take the tokens.', refund: 'none' }],
  ['INSUFFICIENT_BALANCE', { reason: 'The wallet held too little when the call ran.', refund: 'none' }],
  ['OUT_OF_GAS', { reason: 'The call ran out of gas.', refund: 'none' }],
  ['EXPIRED', { reason: 'The quote had lapsed when the call ran.', refund: 'none' }],
  ['SLIPPAGE_EXCEEDED', { reason: 'The price moved more than was allowed.', refund: 'none' }],
  ['UNKNOWN_FAILED_ERROR', { reason: 'The partner does not say why.', refund: 'pending' }],
  // Seen in the wild beside FAILED: the money is on its way back.
  ['REFUND_IN_PROGRESS', { reason: 'The other side could not be paid.', refund: 'pending' }],
])

const pendingSubstatuses = [
  'WAIT_SOURCE_CONFIRMATIONS',
  'WAIT_DESTINATION_TRANSACTION',
  'BRIDGE_NOT_AVAILABLE',
  'CHAIN_NOT_AVAILABLE',
  'REFUND_IN_PROGRESS',
  'UNKNOWN_ERROR',
  'INTENT_AWAITING_FUNDS',
  'INTENT_READY',
  'INTENT_EXECUTING',
  'INTENT_FAILED_RETRYABLE',
  'INTENT_SIMULATION_FAILURE',
]

/**
 * A status of LI.FI's in our words (docs.li.fi, "Checking the status of a transaction"). `DONE` alone is no success: with `REFUNDED` the
 * money came back, with `PARTIAL` another token arrived. What nobody documented is waited for.
 */
export function lifiStatusOf(said: LifiStatus, { to }: Pick<RouteRequest, 'to'>): RouteStatus {
  const substatus = said.substatus ?? ''
  const partnerStatus = substatus === '' ? said.status : `${said.status}/${substatus}`
  const pending = (isKnown: boolean): RouteStatus => {
    return { state: 'pending', partnerStatus, ...(isKnown ? {} : { isUnknown: true }) }
  }
  if (said.status === 'DONE') return doneOf(said, partnerStatus, to) ?? pending(false)
  if (said.status === 'FAILED') {
    const { reason, refund } = failures.get(substatus) ?? failures.get('UNKNOWN_FAILED_ERROR') ?? unexplained
    return { state: 'failed', partnerStatus, reason, refund }
  }
  if (said.status === 'NOT_FOUND') return pending(true)
  // The hash is not the tool's: a fault of ours or theirs that somebody should see, and no proof of anything.
  if (said.status === 'INVALID') return pending(false)
  return pending(said.status === 'PENDING' && (substatus === '' || pendingSubstatuses.includes(substatus)))
}

const unexplained = { reason: 'The partner does not say why.', refund: 'pending' } as const

function doneOf(said: LifiStatus, partnerStatus: string, to: RouteRequest['to']): RouteStatus | undefined {
  const { chainId, txHash, rawAmount, token } = said.receiving ?? {}
  if (said.substatus === 'REFUNDED') {
    const reason = 'The other side could not be paid, and the money came back.'
    const refund = { refund: 'done', ...(txHash === undefined ? {} : { refundTxHash: txHash }) } as const
    return { state: 'failed', partnerStatus, reason, ...refund }
  }
  if (said.substatus !== 'COMPLETED' && said.substatus !== 'PARTIAL') return undefined
  const known = chainId !== undefined && rawAmount !== undefined && token !== undefined
  const isOther = said.substatus === 'PARTIAL' || (known && !sameAddress(token, to.token.address))
  return {
    state: 'completed',
    partnerStatus,
    ...(known ? { received: { chainId, token, rawAmount, isOther } } : {}),
    ...(txHash === undefined ? {} : { destinationTxHash: txHash }),
  }
}
