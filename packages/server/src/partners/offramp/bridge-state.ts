import type { PayoutFailure, PayoutState } from './port.ts'

export interface BridgeState {
  readonly state: PayoutState
  readonly awaitsDeposit: boolean
  readonly failure?: PayoutFailure
  /** Whether nobody has documented it: it is waited for, and somebody should look. */
  readonly isUnknown?: true
  /** Whether somebody of the operator must act at the partner. */
  readonly wantsOperator?: true
}

const waiting: BridgeState = { state: 'pending_conversion', awaitsDeposit: true }
const converting: BridgeState = { state: 'pending_conversion', awaitsDeposit: false }
const failed = (reason: string, refund: PayoutFailure['refund']): BridgeState => {
  return { state: 'failed', awaitsDeposit: false, failure: { reason, refund } }
}

/** Every state of a transfer at Bridge (apidocs.bridge.xyz, "Transfer states") in the service's words. */
const states = new Map<string, BridgeState>([
  ['awaiting_funds', waiting],
  ['in_review', converting],
  ['funds_received', converting],
  ['payment_submitted', { state: 'conversion_complete', awaitsDeposit: false }],
  ['payment_processed', { state: 'completed', awaitsDeposit: false }],
  ['undeliverable', failed('The bank account could not be paid.', 'expected')],
  ['returned', failed('The bank sent the money back.', 'expected')],
  [
    'missing_return_policy',
    { ...failed('The bank account could not be paid, and nobody said where refunds go.', 'held'), wantsOperator: true },
  ],
  ['refunded', failed('The money was sent back.', 'done')],
  ['canceled', failed('The payout was cancelled.', 'none')],
  ['error', { ...failed('The partner could not carry out the payout.', 'held'), wantsOperator: true }],
])

export const bridgeStates: readonly string[] = [...states.keys()]

/** An unknown state is waited for: to call it failed could pay twice, to call it done could lose the money. */
export function stateOfBridge(word: string): BridgeState {
  return states.get(word) ?? { ...converting, isUnknown: true }
}
