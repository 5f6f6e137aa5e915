import { type Address, decodeTransferWithMemoLog, type Hex, sameAddress } from '@purser/protocol'
import type { Log, LookUp, Receipt } from '../../../../chain/port.ts'

/** The transfer that a transaction was signed for. */
export interface ExpectedTransfer {
  readonly token: Address
  readonly from: Address
  readonly to: Address
  readonly amount: bigint
  readonly memo: Hex
}

/** Why a payment ended without money; each has a sentence below. */
type TempoFailure =
  | 'transaction_reverted'
  | 'transaction_without_transfer'
  | 'transaction_expired'
  | 'transaction_refused_insufficient-balance'
  | 'transaction_refused_insufficient-fee'
  | 'transaction_refused_out-of-gas'
  | 'transaction_refused_expired'
  | 'transaction_refused_nonce-too-high'
  | 'transaction_refused_reverted'
  | 'transaction_refused_malformed'

/**
 * `absent`: in no block, and may still be included. `over`: in no block of this node and past its end, so that sending
 * it again is useless; but its failure is not proven yet.
 */
export type TempoOutcome =
  | { readonly kind: 'settled' }
  | { readonly kind: 'failed'; readonly reason: TempoFailure }
  | { readonly kind: 'unripe' | 'absent' | 'over' }

/**
 * Margin in seconds of chain time by which the last irreversible block must be later than the end: a node's receipt index may lag
 * by this much.
 */
const marginSeconds = 5n

/**
 * Decides the outcome of a sent transaction from the chain alone. It failed only if a receipt at the confirmation depth says so,
 * or if an irreversible block is later than the transaction's end and no block contains it.
 */
export function outcomeOf(
  sent: { readonly promised: ExpectedTransfer; readonly validBefore: bigint; readonly depth: number },
  receipt: Receipt | undefined,
  { head, finalized }: Pick<LookUp, 'head' | 'finalized'>,
): TempoOutcome {
  if (receipt !== undefined) {
    if (head.number - receipt.blockNumber + 1n < BigInt(sent.depth)) return { kind: 'unripe' }
    if (receipt.status === 'reverted') return { kind: 'failed', reason: 'transaction_reverted' }
    const isPaid = receipt.logs.some((log) => isExpectedTransfer(log, sent.promised))
    return isPaid ? { kind: 'settled' } : { kind: 'failed', reason: 'transaction_without_transfer' }
  }
  if (finalized.timestampSeconds > sent.validBefore + marginSeconds)
    return { kind: 'failed', reason: 'transaction_expired' }
  return { kind: head.timestampSeconds >= sent.validBefore ? 'over' : 'absent' }
}

function isExpectedTransfer(log: Log, promised: ExpectedTransfer): boolean {
  const made = decodeTransferWithMemoLog(log)
  return (
    made !== undefined &&
    sameAddress(log.address, promised.token) &&
    sameAddress(made.from, promised.from) &&
    sameAddress(made.to, promised.to) &&
    made.amount === promised.amount &&
    made.memo === promised.memo.toLowerCase()
  )
}

const sentences: Readonly<Record<TempoFailure, string>> = {
  transaction_reverted: 'the transaction reverted',
  transaction_without_transfer: 'the transaction made no such transfer',
  transaction_expired: 'the transaction expired before a block took it',
  'transaction_refused_insufficient-balance': 'the payer holds too little of the token',
  'transaction_refused_insufficient-fee': 'the fee cannot be paid',
  'transaction_refused_out-of-gas': 'the gas limit is too low',
  transaction_refused_expired: 'the chain does not take the transaction at this time; check validBefore',
  'transaction_refused_nonce-too-high':
    'the nonce is ahead of the account’s next one, so that no block can take the transaction',
  transaction_refused_reverted: 'the token would not make the transfer',
  transaction_refused_malformed: 'the chain cannot read the transaction',
}

/** Returns the failure as a sentence for the payer. */
export function sentenceOf(reason: string | null): string {
  return Object.entries(sentences).find(([known]) => known === reason)?.[1] ?? 'the transaction failed'
}
