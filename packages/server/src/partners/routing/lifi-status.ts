import { type Address, type Hex, sameAddress } from '@purser/protocol'
import type { RouteRequest, RouteStatus } from './port.ts'

/** The used fields of LI.FI's `GET /status`. */
export interface LifiStatus {
  readonly status: string
  readonly substatus?: string | null | undefined
  readonly receiving?: LifiReceiving | null | undefined
  /** The paid account, if given. */
  readonly toAddress?: Address | undefined
}

type LifiRequest = Pick<RouteRequest, 'to' | 'toAddress'> & { readonly rawOutMin: bigint }

interface LifiReceiving {
  readonly chainId?: number | undefined
  readonly txHash?: Hex | undefined
  readonly rawAmount?: bigint | undefined
  readonly token?: Address | undefined
}

/**
 * Meaning of each failure, and whether LI.FI announces a refund. The source call has already succeeded, so no failure means that nothing is owed.
 */
const failures = new Map<string, { readonly reason: string; readonly refund: 'unknown' | 'pending' }>([
  ['INSUFFICIENT_ALLOWANCE', { reason: 'The partner had no allowance for the tokens.', refund: 'unknown' }],
  ['INSUFFICIENT_BALANCE', { reason: 'The wallet’s balance was too low when the call ran.', refund: 'unknown' }],
  ['OUT_OF_GAS', { reason: 'The call ran out of gas.', refund: 'unknown' }],
  ['EXPIRED', { reason: 'The quote had expired when the call ran.', refund: 'unknown' }],
  ['SLIPPAGE_EXCEEDED', { reason: 'The price moved more than the allowed slippage.', refund: 'unknown' }],
  ['NOT_PROCESSABLE_REFUND_NEEDED', { reason: 'The destination could not be paid.', refund: 'pending' }],
  // Observed in practice with FAILED: a refund is in progress.
  ['REFUND_IN_PROGRESS', { reason: 'The destination could not be paid.', refund: 'pending' }],
])

const pendingSubstatuses = [
  'WAIT_SOURCE_CONFIRMATIONS',
  'WAIT_DESTINATION_TRANSACTION',
  'BRIDGE_NOT_AVAILABLE',
  'CHAIN_NOT_AVAILABLE',
  'UNKNOWN_ERROR',
  'INTENT_AWAITING_FUNDS',
  'INTENT_READY',
  'INTENT_EXECUTING',
  'INTENT_FAILED_RETRYABLE',
  'INTENT_SIMULATION_FAILURE',
]

/** These end in `DONE`/`REFUNDED` (help.li.fi, "Can a transfer result in stuck or lost funds?"). */
const refunding = ['REFUND_IN_PROGRESS', 'NOT_PROCESSABLE_REFUND_NEEDED']

/**
 * Maps a LI.FI status to ours (docs.li.fi, "Checking the status of a transaction"). `DONE` with `REFUNDED` is a refund, not a success. An
 * undocumented status stays pending.
 */
export function lifiStatusOf(response: LifiStatus, request: LifiRequest): RouteStatus {
  const substatus = response.substatus ?? ''
  const partnerStatus = substatus === '' ? response.status : `${response.status}/${substatus}`
  const pending: RouteStatus = { state: 'pending', partnerStatus }
  const unknown: RouteStatus = { ...pending, isUnknown: true }
  if (response.status === 'DONE') return doneOf(response, partnerStatus, request) ?? unknown
  if (response.status === 'FAILED') {
    if (substatus === 'REFUNDED') return refundedOf(response, partnerStatus)
    return { state: 'failed', partnerStatus, ...(failures.get(substatus) ?? unexplained) }
  }
  if (response.status === 'PENDING' && refunding.includes(substatus))
    return { state: 'failed', partnerStatus, reason: 'The destination could not be paid.', refund: 'pending' }
  if (response.status === 'NOT_FOUND') return pending
  // The hash does not belong to the tool. This is an error that an operator should check, but it proves nothing.
  if (response.status === 'INVALID') return unknown
  const isKnown = response.status === 'PENDING' && (substatus === '' || pendingSubstatuses.includes(substatus))
  return isKnown ? pending : unknown
}

const unexplained = { reason: 'The partner gave no reason.', refund: 'unknown' } as const

/**
 * Maps `DONE`. Completed only when the requested token arrived on the requested chain, at the recipient, with at least the minimum. Anything else
 * stays pending for an operator to check. The only supported bridge delivers in one piece, so `PARTIAL` is checked like `COMPLETED`.
 */
function doneOf(response: LifiStatus, partnerStatus: string, request: LifiRequest): RouteStatus | undefined {
  const { to, toAddress, rawOutMin } = request
  const { chainId, txHash, rawAmount, token } = response.receiving ?? {}
  if (response.substatus === 'REFUNDED') return refundedOf(response, partnerStatus)
  if (response.substatus !== 'COMPLETED' && response.substatus !== 'PARTIAL') return undefined
  if (chainId !== to.network.chainId || rawAmount === undefined || token === undefined) return undefined
  if (rawAmount < rawOutMin || rawAmount === 0n || !sameAddress(token, to.token.address)) return undefined
  if (response.toAddress !== undefined && !sameAddress(response.toAddress, toAddress)) return undefined
  const received = { chainId, token, rawAmount, isOther: false }
  return { state: 'completed', partnerStatus, received, ...(txHash === undefined ? {} : { destinationTxHash: txHash }) }
}

function refundedOf({ receiving }: LifiStatus, partnerStatus: string): RouteStatus {
  const reason = 'The destination could not be paid, and the money was refunded.'
  const hash = receiving?.txHash
  return {
    state: 'failed',
    partnerStatus,
    reason,
    refund: 'done',
    ...(hash === undefined ? {} : { refundTxHash: hash }),
  }
}
