import type { Address } from '../address.ts'
import type { Hex } from '../bytes.ts'
import type { Reason } from './reasons.ts'

/** A JSON object with unchecked members. */
export type JsonObject = { readonly [member: string]: unknown }

/**
 * The reason why a message is malformed: the reason of the protocol, the position (JSON Pointer), and a sentence that
 * contains no text of the message.
 */
export type MessageFault = { readonly reason: Reason; readonly path: string; readonly message: string }

/** The result of a parser, which never throws. */
export type Parsed<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly fault: MessageFault }

/** The resource that is paid for (x402 v2 section 5.1.2). */
export type ResourceInfo = {
  readonly url: string
  readonly description?: string | undefined
  readonly mimeType?: string | undefined
  readonly serviceName?: string | undefined
  readonly tags?: readonly string[] | undefined
  readonly iconUrl?: string | undefined
}

/** An offer of version 2: the network is a CAIP-2 id, the amount is in the token's smallest unit as decimal digits. */
export type PaymentRequirementsV2 = {
  readonly scheme: string
  readonly network: string
  readonly amount: string
  readonly asset: string
  readonly payTo: string
  readonly maxTimeoutSeconds: number
  readonly extra?: JsonObject | undefined
}

/** An offer of version 1: the network is a name, and every offer contains the resource. */
export type PaymentRequirementsV1 = {
  readonly scheme: string
  readonly network: string
  readonly maxAmountRequired: string
  readonly resource: string
  readonly description: string
  readonly mimeType?: string | undefined
  readonly outputSchema?: JsonObject | undefined
  readonly payTo: string
  readonly maxTimeoutSeconds: number
  readonly asset: string
  readonly extra?: JsonObject | undefined
}

/** The challenge of version 2, carried in the `PAYMENT-REQUIRED` header. */
export type PaymentRequiredV2 = {
  readonly x402Version: 2
  readonly error?: string | undefined
  readonly resource: ResourceInfo
  readonly accepts: readonly PaymentRequirementsV2[]
  readonly extensions?: JsonObject | undefined
}

/** The challenge of version 1, carried as the body of the 402. */
export type PaymentRequiredV1 = {
  readonly x402Version: 1
  readonly error?: string | undefined
  readonly accepts: readonly PaymentRequirementsV1[]
}

/** A payer's EIP-3009 authorization on the wire; integers as decimal digits below 2^256. */
export type WireAuthorization = {
  readonly from: Address
  readonly to: Address
  readonly value: string
  readonly validAfter: string
  readonly validBefore: string
  readonly nonce: Hex
}

/** The payload of scheme `exact` with EIP-3009. The signature is any text, and is checked later. */
export type ExactEvmPayload = { readonly signature: string; readonly authorization: WireAuthorization }

/** A payment, version 2, carried in the `PAYMENT-SIGNATURE` header. */
export type PaymentPayloadV2 = {
  readonly x402Version: 2
  readonly resource?: ResourceInfo | undefined
  readonly accepted: PaymentRequirementsV2
  readonly payload: ExactEvmPayload
  readonly extensions?: JsonObject | undefined
}

/** A payment, version 1, carried in the `X-PAYMENT` header. */
export type PaymentPayloadV1 = {
  readonly x402Version: 1
  readonly scheme: string
  readonly network: string
  readonly payload: ExactEvmPayload
}

/** A payment of either version. */
export type PaymentPayload = PaymentPayloadV1 | PaymentPayloadV2

/** The request to a facilitator's `/verify` and `/settle`. Both parts have the same x402 version. */
export type FacilitatorRequest =
  | {
      readonly x402Version: 1
      readonly paymentPayload: PaymentPayloadV1
      readonly paymentRequirements: PaymentRequirementsV1
    }
  | {
      readonly x402Version: 2
      readonly paymentPayload: PaymentPayloadV2
      readonly paymentRequirements: PaymentRequirementsV2
    }

/** A facilitator's response to `/verify`. */
export type VerifyResponse = {
  readonly isValid: boolean
  readonly invalidReason?: string | undefined
  readonly invalidMessage?: string | undefined
  readonly payer?: string | undefined
  readonly extensions?: JsonObject | undefined
  readonly extra?: JsonObject | undefined
}

/**
 * The result of a settlement, in a facilitator's response and in `PAYMENT-RESPONSE`. `transaction` is empty if there is
 * none.
 */
export type SettleResponse = {
  readonly success: boolean
  readonly errorReason?: string | undefined
  readonly errorMessage?: string | undefined
  readonly payer?: string | undefined
  readonly transaction: string
  readonly network: string
  readonly amount?: string | undefined
  readonly extensions?: JsonObject | undefined
  readonly extra?: JsonObject | undefined
}

/** A scheme that a facilitator supports on a network. */
export type SupportedKind = {
  readonly x402Version: number
  readonly scheme: string
  readonly network: string
  readonly extra?: JsonObject | undefined
}

/** A facilitator's response to `/supported`. */
export type SupportedResponse = {
  readonly kinds: readonly SupportedKind[]
  readonly extensions: readonly string[]
  readonly signers: { readonly [family: string]: readonly string[] }
}
