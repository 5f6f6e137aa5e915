import type { Address, Network, Reason, TokenInfo } from '@purser/protocol'
import type { Ctx } from '../../../platform/ctx.ts'
import type { Funds } from '../funds.ts'
import type { NewPayment, StoredSettlement } from '../store.ts'
import type { FacilitatorBody } from './schema.ts'

/** The identity of a payment, read without the chain and without verification: enough to recognize it again. */
export interface Claim {
  /** Key under which it is recorded, once for all organizations and entry points. */
  readonly claimKey: string
  readonly x402Version: 1 | 2
  readonly payer: Address
  readonly network: Network
  readonly token: TokenInfo
  readonly payTo: Address
  /** Digest of the signed parts: other parts under the same claim are another payment. */
  readonly fingerprint: string
  /**
   * The amount that a settle request takes of a payment that permits more, in the token's smallest unit; charged by `chargeUpto`.
   */
  readonly charge?: bigint
  /** Reason for a payer whose claim is already used; for EIP-3009 `invalid_exact_evm_nonce_already_used`. */
  readonly usedReason?: Reason
  /** Whether the recorded amount, in the token's smallest unit, covers what the requirements charge now. */
  isPaidBy(rawRecorded: bigint): boolean
}

/** A payment that passed every check that does not need the chain. */
export interface Judged {
  readonly scheme: string
  /** In the token's smallest unit; for a scheme with a maximum, the most that may be taken. */
  readonly rawAmount: bigint
  readonly settlement: StoredSettlement
  readonly validBefore: Date
  /** Returns the payer's funds. Throws the protocol's refusal, or the problem `chain-unavailable` when the node fails. */
  refuseByChain(payment: NewPayment): Promise<Funds>
}

/** The parsed request, and the check that needs a signature recovery. */
export interface Reading {
  readonly claim: Claim
  /** Throws the protocol's refusal. */
  judge(): Judged
}

/** The step of a request: under scheme `upto` its amount is the maximum at verify and the charged amount at settle. */
export type Step = 'verify' | 'settle'

/** A payment scheme as the facilitator uses it. */
export interface Scheme {
  /** Throws the protocol's refusal if the body is not a payment of this scheme, or is for a network that is not served here. */
  read(ctx: Ctx, body: FacilitatorBody, step: Step): Reading
}
