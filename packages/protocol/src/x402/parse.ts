import { signatureBytesMax } from '../signature.ts'
import {
  address,
  boolean,
  bytes32,
  type Cursor,
  enter,
  isObject,
  list,
  member,
  note,
  optionalObject,
  optionalText,
  positiveNumber,
  rawAmount,
  type Trouble,
  text,
} from './fields.ts'
import type {
  ExactEvmPayload,
  FacilitatorRequest,
  Parsed,
  PaymentPayload,
  PaymentPayloadV1,
  PaymentPayloadV2,
  PaymentRequiredV1,
  PaymentRequiredV2,
  PaymentRequirementsV1,
  PaymentRequirementsV2,
  ResourceInfo,
  SettleResponse,
  SupportedResponse,
  VerifyResponse,
} from './messages.ts'
import type { Reason } from './reasons.ts'

const nameMax = 64
const accountMax = 128
const amountMax = 96
const urlMax = 4_096
const proseMax = 4_096
const offersMax = 64
const kindsMax = 1_024
const signatureTextMax = 2 + 2 * signatureBytesMax
const printableAscii = /^[\x20-\x7e]+$/

/**
 * Reads a payment of either version for scheme `exact` with EIP-3009; `x402Version` says which. Unknown members are dropped.
 *
 * @example
 * parsePaymentPayload({ x402Version: 2 }).ok // false
 */
export function parsePaymentPayload(value: unknown): Parsed<PaymentPayload> {
  if (!isObject(value)) return refuse('invalid_payload', '', 'must be an object')
  if (value.x402Version === 2) return parsePayloadV2(value)
  if (value.x402Version === 1) return parsePayloadV1(value)
  return refuse('invalid_x402_version', '/x402Version', 'must be 1 or 2')
}

/**
 * Reads the challenge of version 2. Also reads offers of other schemes and chains: the client selects one that it can
 * pay.
 *
 * @example
 * const accepts = [{ scheme: 'exact', network: 'eip155:84532', amount: '10000', asset: '0x036CbD53842c5426634e7929541eC2318f3dCF7e', payTo: '0x209693Bc6afc0C5328bA36FaF03C514EF312287C', maxTimeoutSeconds: 60 }]
 * const required = { x402Version: 2, resource: { url: 'https://api.example.com/report' }, accepts }
 * parsePaymentRequiredV2(required).ok // true
 * parsePaymentRequiredV2({ x402Version: 1 }).ok // false
 */
export function parsePaymentRequiredV2(value: unknown): Parsed<PaymentRequiredV2> {
  if (isObject(value) && value.x402Version !== 2) return refuse('invalid_x402_version', '/x402Version', 'must be 2')
  return parsed(value, 'invalid_payment_requirements', (cursor) => ({
    x402Version: 2,
    error: optionalText(cursor, 'error', proseMax),
    resource: readResource(member(cursor, 'resource')),
    accepts: readOffers(cursor, readRequirementsV2),
    extensions: optionalObject(cursor, 'extensions'),
  }))
}

/**
 * Reads the challenge of version 1.
 *
 * @example
 * parsePaymentRequiredV1({}).ok // false
 */
export function parsePaymentRequiredV1(value: unknown): Parsed<PaymentRequiredV1> {
  if (isObject(value) && value.x402Version !== 1) return refuse('invalid_x402_version', '/x402Version', 'must be 1')
  return parsed(value, 'invalid_payment_requirements', (cursor) => ({
    x402Version: 1,
    error: optionalText(cursor, 'error', proseMax),
    accepts: readOffers(cursor, readRequirementsV1),
  }))
}

/**
 * Reads one offer of version 2.
 *
 * @example
 * const accepts = [{ scheme: 'exact', network: 'eip155:84532', amount: '10000', asset: '0x036CbD53842c5426634e7929541eC2318f3dCF7e', payTo: '0x209693Bc6afc0C5328bA36FaF03C514EF312287C', maxTimeoutSeconds: 60 }]
 * const required = { x402Version: 2, resource: { url: 'https://api.example.com/report' }, accepts }
 * parsePaymentRequirementsV2(accepts[0]).ok // true
 * parsePaymentRequirementsV2({}).ok // false
 */
export function parsePaymentRequirementsV2(value: unknown): Parsed<PaymentRequirementsV2> {
  return parsed(value, 'invalid_payment_requirements', readRequirementsV2)
}

/**
 * Reads one offer of version 1.
 *
 * @example
 * parsePaymentRequirementsV1({}).ok // false
 */
export function parsePaymentRequirementsV1(value: unknown): Parsed<PaymentRequirementsV1> {
  return parsed(value, 'invalid_payment_requirements', readRequirementsV1)
}

/**
 * Reads the body of a facilitator's `/verify` or `/settle`. The version is that of the payment. A body that states
 * another version is refused, because its parts would have different formats.
 *
 * @example
 * parseFacilitatorRequest({}).ok // false
 */
export function parseFacilitatorRequest(value: unknown): Parsed<FacilitatorRequest> {
  if (!isObject(value)) return refuse('invalid_payload', '', 'must be an object')
  const payment = parsePaymentPayload(value.paymentPayload)
  if (!payment.ok) return payment
  const x402Version = value.x402Version ?? payment.value.x402Version
  if (x402Version !== payment.value.x402Version) {
    return refuse('invalid_x402_version', '/x402Version', 'must be the version of the payment')
  }
  if (payment.value.x402Version === 2) {
    const required = parsePaymentRequirementsV2(value.paymentRequirements)
    if (!required.ok) return required
    return accept({ x402Version: 2, paymentPayload: payment.value, paymentRequirements: required.value })
  }
  const required = parsePaymentRequirementsV1(value.paymentRequirements)
  if (!required.ok) return required
  return accept({ x402Version: 1, paymentPayload: payment.value, paymentRequirements: required.value })
}

/**
 * Reads a facilitator's response to `/verify`.
 *
 * @example
 * parseVerifyResponse({ isValid: true, payer: '0x036CbD53842c5426634e7929541eC2318f3dCF7e' }).ok // true
 * parseVerifyResponse({}).ok // false
 */
export function parseVerifyResponse(value: unknown): Parsed<VerifyResponse> {
  return parsed(value, 'unexpected_verify_error', (cursor) => ({
    isValid: boolean(cursor, 'isValid'),
    invalidReason: optionalText(cursor, 'invalidReason', proseMax),
    invalidMessage: optionalText(cursor, 'invalidMessage', proseMax),
    payer: optionalText(cursor, 'payer', accountMax),
    extensions: optionalObject(cursor, 'extensions'),
    extra: optionalObject(cursor, 'extra'),
  }))
}

/**
 * Reads a facilitator's response to `/settle`, or the value of a `PAYMENT-RESPONSE`.
 *
 * @example
 * const settled = { success: true, transaction: '0x01', network: 'eip155:84532', payer: '0x036CbD53842c5426634e7929541eC2318f3dCF7e' }
 * parseSettleResponse(settled).ok // true
 * parseSettleResponse({}).ok // false
 */
export function parseSettleResponse(value: unknown): Parsed<SettleResponse> {
  return parsed(value, 'unexpected_settle_error', (cursor) => ({
    success: boolean(cursor, 'success'),
    errorReason: optionalText(cursor, 'errorReason', proseMax),
    errorMessage: optionalText(cursor, 'errorMessage', proseMax),
    payer: optionalText(cursor, 'payer', accountMax),
    transaction: text(cursor, 'transaction', accountMax, 0),
    network: text(cursor, 'network', nameMax),
    amount: optionalText(cursor, 'amount', amountMax),
    extensions: optionalObject(cursor, 'extensions'),
    extra: optionalObject(cursor, 'extra'),
  }))
}

/**
 * Reads a facilitator's response to `/supported`. A version 1 facilitator sends only `kinds`.
 *
 * @example
 * parseSupportedResponse({}).ok // false
 */
export function parseSupportedResponse(value: unknown): Parsed<SupportedResponse> {
  return parsed(value, 'invalid_payload', (cursor) => ({
    kinds: list(cursor, 'kinds', kindsMax, (item, path) => readKind(enter(item, path, cursor.trouble))),
    extensions: isObject(value) && value.extensions === undefined ? [] : readTexts(cursor, 'extensions'),
    signers: readSigners(cursor),
  }))
}

function parsePayloadV2(value: { readonly [member: string]: unknown }): Parsed<PaymentPayloadV2> {
  const accepted = isObject(value.accepted) ? value.accepted : {}
  const other = whyNotExactEip3009(accepted.scheme, value.payload, '/accepted/scheme')
  if (other !== undefined) return other
  return parsed(value, 'invalid_payload', (cursor) => ({
    x402Version: 2,
    resource: value.resource == null ? undefined : readResource(member(cursor, 'resource')),
    accepted: readRequirementsV2(member(cursor, 'accepted')),
    payload: readExactEvmPayload(member(cursor, 'payload')),
    extensions: optionalObject(cursor, 'extensions'),
  }))
}

function parsePayloadV1(value: { readonly [member: string]: unknown }): Parsed<PaymentPayloadV1> {
  const other = whyNotExactEip3009(value.scheme, value.payload, '/scheme')
  if (other !== undefined) return other
  return parsed(value, 'invalid_payload', (cursor) => ({
    x402Version: 1,
    scheme: text(cursor, 'scheme', nameMax),
    network: text(cursor, 'network', nameMax),
    payload: readExactEvmPayload(member(cursor, 'payload')),
  }))
}

/** The refusal of a payment with another scheme or kind of payload, which may be well formed otherwise. */
function whyNotExactEip3009(scheme: unknown, payload: unknown, path: string): Parsed<never> | undefined {
  if (typeof scheme === 'string' && scheme !== 'exact') {
    return refuse('invalid_exact_evm_scheme', path, 'only the scheme exact is taken')
  }
  if (isObject(payload) && ('permit2Authorization' in payload || 'transaction' in payload)) {
    return refuse('unsupported_payload_type', '/payload', 'only EIP-3009 authorizations are taken')
  }
  return undefined
}

function readExactEvmPayload(cursor: Cursor): ExactEvmPayload {
  const authorization = member(cursor, 'authorization')
  return {
    signature: text(cursor, 'signature', signatureTextMax),
    authorization: {
      from: address(authorization, 'from'),
      to: address(authorization, 'to'),
      value: rawAmount(authorization, 'value'),
      validAfter: rawAmount(authorization, 'validAfter'),
      validBefore: rawAmount(authorization, 'validBefore'),
      nonce: bytes32(authorization, 'nonce'),
    },
  }
}

/** Reads one offer of version 2 inside another message. */
export function readRequirementsV2(cursor: Cursor): PaymentRequirementsV2 {
  const network = text(cursor, 'network', nameMax, 3)
  if (!network.includes(':')) note(cursor.trouble, `${cursor.path}/network`, 'must be a CAIP-2 chain id')
  return {
    scheme: text(cursor, 'scheme', nameMax),
    network,
    amount: text(cursor, 'amount', amountMax),
    asset: text(cursor, 'asset', accountMax),
    payTo: text(cursor, 'payTo', accountMax),
    maxTimeoutSeconds: positiveNumber(cursor, 'maxTimeoutSeconds'),
    extra: optionalObject(cursor, 'extra'),
  }
}

function readRequirementsV1(cursor: Cursor): PaymentRequirementsV1 {
  return {
    scheme: text(cursor, 'scheme', nameMax),
    network: text(cursor, 'network', nameMax),
    maxAmountRequired: text(cursor, 'maxAmountRequired', amountMax),
    resource: text(cursor, 'resource', urlMax),
    description: text(cursor, 'description', proseMax, 0),
    mimeType: optionalText(cursor, 'mimeType', proseMax),
    outputSchema: optionalObject(cursor, 'outputSchema'),
    payTo: text(cursor, 'payTo', accountMax),
    maxTimeoutSeconds: positiveNumber(cursor, 'maxTimeoutSeconds'),
    asset: text(cursor, 'asset', accountMax),
    extra: optionalObject(cursor, 'extra'),
  }
}

function readOffers<T>(cursor: Cursor, read: (cursor: Cursor) => T): readonly T[] {
  const offers = list(cursor, 'accepts', offersMax, (item, path) => read(enter(item, path, cursor.trouble)))
  if (offers.length === 0) note(cursor.trouble, `${cursor.path}/accepts`, 'must hold an offer')
  return offers
}

/** Reads what is being paid for. */
export function readResource(cursor: Cursor): ResourceInfo {
  const { object } = cursor
  return {
    url: text(cursor, 'url', urlMax),
    description: optionalText(cursor, 'description', proseMax),
    mimeType: optionalText(cursor, 'mimeType', proseMax),
    serviceName:
      object.serviceName == null ? undefined : readLabel(object.serviceName, `${cursor.path}/serviceName`, cursor),
    tags: object.tags == null ? undefined : list(cursor, 'tags', 5, (item, path) => readLabel(item, path, cursor)),
    iconUrl: optionalText(cursor, 'iconUrl', 2_048),
  }
}

function readLabel(value: unknown, path: string, cursor: Cursor): string {
  if (typeof value === 'string' && value.length <= 32 && printableAscii.test(value)) return value
  note(cursor.trouble, path, 'must be 1 to 32 printable ASCII characters')
  return ''
}

function readKind(cursor: Cursor): SupportedResponse['kinds'][number] {
  return {
    x402Version: positiveNumber(cursor, 'x402Version'),
    scheme: text(cursor, 'scheme', nameMax),
    network: text(cursor, 'network', nameMax),
    extra: optionalObject(cursor, 'extra'),
  }
}

function readTexts(cursor: Cursor, name: string): readonly string[] {
  return list(cursor, name, kindsMax, (item, path) => {
    if (typeof item === 'string' && item.length <= proseMax) return item
    note(cursor.trouble, path, 'must be a string')
    return ''
  })
}

function readSigners(cursor: Cursor): SupportedResponse['signers'] {
  const signers = optionalObject(cursor, 'signers') ?? {}
  const families = enter(signers, `${cursor.path}/signers`, cursor.trouble)
  return Object.fromEntries(Object.keys(signers).map((family) => [family, readTexts(families, family)]))
}

/** Reads a whole message with cursors. Returns the result, or the first fault under this reason. */
export function parsed<T>(value: unknown, reason: Reason, read: (cursor: Cursor) => T): Parsed<T> {
  const trouble: Trouble = { first: undefined }
  const result = read(enter(value, '', trouble))
  return trouble.first === undefined ? accept(result) : { ok: false, fault: { reason, ...trouble.first } }
}

function accept<T>(value: T): Parsed<T> {
  return { ok: true, value }
}

function refuse(reason: Reason, path: string, message: string): Parsed<never> {
  return { ok: false, fault: { reason, path, message } }
}
