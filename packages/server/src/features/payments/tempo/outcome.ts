import { type Address, decodeTransferWithMemoLog, type Hex, sameAddress } from '@purser/protocol'
import type { Log, LookUp, Receipt } from '../../../chain/port.ts'

/** The transfer that a transaction was signed for. */
export interface Promised {
  readonly token: Address
  readonly from: Address
  readonly to: Address
  readonly amount: bigint
  readonly memo: Hex
}

/** What ended a payment without money; each has a sentence below. */
export type TempoFailure =
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

/** `absent`: in no block, and may still come. `over`: in no block that this node has, and sending again is useless, but nothing is proven yet. */
export type TempoOutcome =
  | { readonly kind: 'settled' }
  | { readonly kind: 'failed'; readonly reason: TempoFailure }
  | { readonly kind: 'unripe' | 'absent' | 'over' }

/** Seconds of the chain's own time that the last irreversible block must be past the end: what a node may lag in indexing receipts. */
const marginSeconds = 5n

/**
 * What became of a transaction that was sent, decided by the chain alone. It failed only when a receipt at the confirmation depth says so, or when
 * a block that can no longer be undone is later than the transaction's end and no block has it.
 */
export function outcomeOf(
  sent: { readonly promised: Promised; readonly validBefore: bigint; readonly depth: number },
  receipt: Receipt | undefined,
  { head, finalized }: Pick<LookUp, 'head' | 'finalized'>,
): TempoOutcome {
  if (receipt !== undefined) {
    if (head.number - receipt.blockNumber + 1n < BigInt(sent.depth)) return { kind: 'unripe' }
    if (receipt.status === 'reverted') return { kind: 'failed', reason: 'transaction_reverted' }
    const isPaid = receipt.logs.some((log) => isPromised(log, sent.promised))
    return isPaid ? { kind: 'settled' } : { kind: 'failed', reason: 'transaction_without_transfer' }
  }
  if (finalized.timestampSeconds > sent.validBefore + marginSeconds)
    return { kind: 'failed', reason: 'transaction_expired' }
  return { kind: head.timestampSeconds >= sent.validBefore ? 'over' : 'absent' }
}

function isPromised(log: Log, promised: Promised): boolean {
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

/** A failure as the payer is told it. */
export function sentenceOf(reason: string | null): string {
  return Object.entries(sentences).find(([known]) => known === reason)?.[1] ?? 'the transaction failed'
}
