import type { PayoutFailure, PayoutState } from './port.ts'

export interface BridgeState {
  readonly state: PayoutState
  readonly awaitsDeposit: boolean
  readonly failure?: PayoutFailure
  /** Set for an undocumented state. The payout stays pending, and an operator should check it. */
  readonly isUnknown?: true
  /** Set when the operator must act at the partner. */
  readonly wantsOperator?: true
}

const waiting: BridgeState = { state: 'pending_conversion', awaitsDeposit: true }
const converting: BridgeState = { state: 'pending_conversion', awaitsDeposit: false }
const failed = (reason: string, refund: PayoutFailure['refund']): BridgeState => {
  return { state: 'failed', awaitsDeposit: false, failure: { reason, refund } }
}

/** Maps every state of a Bridge transfer (apidocs.bridge.xyz, "Transfer states") to the service's states. */
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
    { ...failed('The bank account could not be paid, and no refund destination is set.', 'held'), wantsOperator: true },
  ],
  ['refunded', failed('The money was sent back.', 'done')],
  ['canceled', failed('The payout was canceled.', 'none')],
  ['error', { ...failed('The partner could not carry out the payout.', 'held'), wantsOperator: true }],
])

export const bridgeStates: readonly string[] = [...states.keys()]

/** An unknown state counts as pending: treating it as failed could pay twice, and treating it as done could lose the money. */
export function stateOfBridge(word: string): BridgeState {
  return states.get(word) ?? { ...converting, isUnknown: true }
}
