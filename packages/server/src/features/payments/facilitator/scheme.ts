import type { Address, Network, Reason, TokenInfo } from '@purser/protocol'
import type { Ctx } from '../../../platform/ctx.ts'
import type { Funds } from '../record.ts'
import type { NewPayment, StoredSettlement } from '../store.ts'
import type { FacilitatorBody } from './schema.ts'

/** What a payment says of itself, read without the chain and without believing it: enough to know it again. */
export interface Claim {
  /** Under which it is recorded, once for all organisations and doors. */
  readonly claimKey: string
  readonly x402Version: 1 | 2
  readonly payer: Address
  readonly network: Network
  readonly token: TokenInfo
  readonly payTo: Address
  /** Digest of the signed parts: other parts under the same claim are another payment. */
  readonly fingerprint: string
  /** What a settle request takes of a payment that permits more, in the token's smallest unit: ask for it by `chargeUpto`. */
  readonly charge?: bigint
  /** What a payer is told whose claim is taken; for EIP-3009 `invalid_exact_evm_nonce_already_used`. */
  readonly usedReason?: Reason
  /** Whether what was recorded, in the token's smallest unit, pays what the requirements ask for now. */
  isPaidBy(rawRecorded: bigint): boolean
}

/** A payment that is good as far as can be said without the chain. */
export interface Judged {
  readonly scheme: string
  /** In the token's smallest unit; for a scheme with a maximum, the most that may be taken. */
  readonly rawAmount: bigint
  readonly settlement: StoredSettlement
  readonly validBefore: Date
  /** Answers what the payer has. Throws the protocol's refusal, or the problem `chain-unavailable` when the node fails. */
  refuseByChain(payment: NewPayment): Promise<Funds>
}

/** What was read of a request, and the judgement of it that costs a signature recovery. */
export interface Reading {
  readonly claim: Claim
  /** Throws the protocol's refusal. */
  judge(): Judged
}

/** What a request asks for: under scheme `upto` its amount is the maximum at verify and what is taken at settle. */
export type Step = 'verify' | 'settle'

/** One way to pay, as the facilitator needs it. */
export interface Scheme {
  /** Throws the protocol's refusal for what is no payment of this kind, or is for a network that is not served here. */
  read(ctx: Ctx, body: FacilitatorBody, step: Step): Reading
}
