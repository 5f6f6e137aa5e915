import type {
  Address,
  Chain,
  JsonObject,
  MppChallenge,
  Network,
  Reason,
  SupportedKind,
  TokenInfo,
} from '@purser/protocol'
import type { z } from 'zod'
import type { PaymentId } from '../../../platform/ids.ts'
import type { ReceivingWallet } from '../../wallets/index.ts'
import type { FacilitatorBody } from '../facilitator/schema.ts'
import type { Ctx, Funds } from '../ports.ts'
import type { VerifiedPayment, VerifyRequest } from '../schema.ts'
import type { StoredSettlement } from '../store.ts'

/** The identity of a payment, read without the chain and without verification: enough to recognize it again. */
export interface ReadCredential {
  /** Key under which it is recorded, once for all organisations and entry points. */
  readonly claimKey: string
  readonly x402Version: 1 | 2
  /** The scheme that the requirements name. A payment is settled under the scheme of its verification. */
  readonly scheme: string
  readonly payer: Address
  readonly network: Network
  readonly token: TokenInfo
  readonly payTo: Address
  /** Digest of the signed parts: other parts under the same claim are another payment. */
  readonly fingerprint: string
  /** Sets the amount to charge, for a scheme whose signature permits a maximum (`upto`). */
  readonly charge?: (paymentId: PaymentId) => Promise<void>
  /** Reason for a payer whose claim is already used; for EIP-3009 `invalid_exact_evm_nonce_already_used`. */
  readonly usedReason?: Reason
  /** Whether the recorded amount, in the token's smallest unit, covers what the requirements charge now. */
  isPaidBy(rawRecorded: bigint): boolean
}

/** A payment that passed every check that does not need the chain. */
export interface CheckedPayment {
  readonly scheme: string
  /** In the token's smallest unit; for a scheme with a maximum, the most that may be taken. */
  readonly rawAmount: bigint
  readonly validBefore: Date
  /** Throws the protocol's refusal, or the problem `chain-unavailable` when the node fails. */
  refuseByChain(claimKey: string): Promise<ChainChecked>
}

/** A payment that the chain accepts: the payer's funds, and the settlement that was simulated and is recorded. */
interface ChainChecked {
  readonly funds: Funds
  readonly settlement: StoredSettlement
}

/** The parsed request, and the check that needs a signature recovery. */
export interface ParsedRequest {
  readonly claim: ReadCredential
  /** Throws the protocol's refusal. */
  check(): CheckedPayment
}

/** The step of a request: under scheme `upto` its amount is the maximum at verify and the charged amount at settle. */
export type Step = 'verify' | 'settle'

/** The members with which the kinds of a scheme are listed. */
export type KindsCtx = Pick<Ctx, 'chainMemory' | 'chains' | 'settlerAddress'>

/** A scheme of x402, as the facilitator uses it. Source: x402 specification v2, section 7. */
export interface Scheme {
  /** Whether this scheme reads the body. The body may be a faulty payment: `read` reports the fault. */
  readonly accepts: (body: FacilitatorBody) => boolean
  /** Throws the protocol's refusal if the body is not a payment of this scheme, or is for a network that is not served here. */
  readonly read: (ctx: Ctx, body: FacilitatorBody, step: Step) => ParsedRequest
  /** The kinds that it adds to `/supported`. A network whose node fails is left out. */
  readonly kinds?: (ctx: KindsCtx, networks: readonly Network[]) => Promise<readonly SupportedKind[]>
}

/** The terms that a challenge of MPP requests, whatever its method. */
export interface Requested {
  /** In the token's smallest unit; '0' requires only a proof of the account. */
  readonly amount: string
  readonly currency: Address
  readonly recipient: Address
  readonly chainId: number
}

/** A payment method of MPP with the intent `charge`. Source: draft-ryan-httpauth-payment, and the method's own draft. */
export interface MppMethod {
  /** As challenges name it. */
  readonly name: string
  /** Whether wallets on this network are paid by it. */
  readonly isOn: (network: Network) => boolean
  /** Whether a challenge may offer now that the service pays the payer's fee. */
  readonly paysFee: (ctx: Ctx, network: Network) => Promise<boolean>
  /** The challenge's `request`. */
  readonly requestOf: (requested: Requested, token: TokenInfo, feePayer: boolean) => JsonObject
  /** Reads a challenge's `request`; undefined if it is not one of this method. */
  readonly parse: (request: JsonObject) => (Requested & { readonly feePayer: boolean }) | undefined
  /** Whether the payer sent the money before presenting this payload. */
  readonly isSent: (payload: JsonObject) => boolean
  /** Verifies the payment of a genuine challenge, and records it. */
  readonly verify: (ctx: Ctx, purchase: MppPurchase) => Promise<z.input<typeof VerifiedPayment>>
}

/** A way to pay. A new one is a folder beside this file and a line in `index.ts`. */
export interface PaymentMethod {
  readonly scheme?: Scheme
  readonly mpp?: MppMethod
}

/**
 * The purchase that an MPP credential requests, once its challenge is proven genuine and unexpired, for this resource and at the
 * price, wallet and network of the verify request. The payload is not verified yet: the method checks that it pays.
 */
export interface MppPurchase {
  readonly request: VerifyRequest
  readonly wallet: ReceivingWallet
  readonly token: TokenInfo
  /** In the token's smallest unit; 0n requires only a proof of the account. */
  readonly rawAmount: bigint
  readonly challenge: MppChallenge
  /** The network's name as the wallet's owner knows it. */
  readonly chain: Chain
  /** The network on which it is paid: the wallet's, or for a price of zero the environment's Tempo network. */
  readonly network: Network
  /** The credential's `payload`, as sent. */
  readonly payload: JsonObject
  /** The credential's `source`, as sent: a `did:pkh` of the payer, or none. */
  readonly source: string | undefined
  /**
   * Only for money that was already sent: the challenge requested less than the price is now, and its price is not honored. The
   * money is credited and buys nothing.
   */
  readonly isUnderpriced: boolean
  /** Whether the challenge promised that the service pays the fee. */
  readonly feePayer: boolean
}
