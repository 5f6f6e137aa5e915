import { mppCredentialsIn, parseMppCredential } from '@purser/protocol'
import { isRecord } from '../problem.ts'
import { decodeHeader } from './headers.ts'

/** A payment as the caller sent it. Its content is untrusted until Purser has verified it. */
export type Credential = X402Credential | MppSent

export interface X402Credential {
  readonly protocol: 'x402'
  /** The header's raw value. */
  readonly value: string
  /** The response header: x402 version 2 and version 1 use different ones. */
  readonly responseHeader: 'PAYMENT-RESPONSE' | 'X-PAYMENT-RESPONSE'
  /** The network that the payer named: CAIP-2 in version 2, a name in version 1, `stub` for a stub payment. */
  readonly network: string
  /**
   * The payment identifier chosen by the payer (x402 extension `payment-identifier`). A repeat with it gets the same
   * response.
   */
  readonly paymentId: string | undefined
  /** The payer that the credential claims. */
  readonly payer: string | undefined
}

export interface MppSent {
  readonly protocol: 'mpp'
  /** Scheme and token, or a stub. Other parts of the header, such as a `Bearer` key, are not forwarded. */
  readonly value: string
}

type Headers = (name: string) => string | undefined

/**
 * Returns the payment credential of a request, `none`, or `ambiguous` if there are several in any headers and
 * protocols. Comma-joined copies in one header count as several (MPP: draft-httpauth-payment-00, one credential per
 * request).
 */
export function findCredential(header: Headers): Credential | 'none' | 'ambiguous' {
  const [v2, v1] = [header('payment-signature') ?? '', header('x-payment') ?? '']
  const mpp = [...paymentsIn(header('authorization')), ...paymentsIn(header('payment-authorization'))]
  const sent = countOf(v2) + countOf(v1) + mpp.length
  if (sent === 0) return 'none'
  if (sent > 1) return 'ambiguous'
  const [value] = mpp
  if (value !== undefined) return { protocol: 'mpp', value }
  return v2 === '' ? x402Of(v1, 'X-PAYMENT-RESPONSE') : x402Of(v2, 'PAYMENT-RESPONSE')
}

/** Whether the payer broadcasts the transaction (MPP, a credential of type `hash`). */
export function isPush(credential: Credential): boolean {
  if (credential.protocol !== 'mpp') return false
  const parsed = parseMppCredential(credential.value)
  return parsed.ok && parsed.value.payload.type === 'hash'
}

/** Whether verification may move money. On Tempo it broadcasts the transaction; an `evm/charge` is settled later. */
export function movesAtVerify(credential: Credential): boolean {
  if (credential.protocol !== 'mpp') return false
  const parsed = parseMppCredential(credential.value)
  return !parsed.ok || parsed.value.challenge.method !== 'evm'
}

/**
 * The payer that an unverified credential claims. Undefined if it claims none, or if money moves at or before
 * verification. A credential that claims another account fails verification.
 */
export function claimedPayer(credential: Credential): string | undefined {
  if (credential.protocol === 'x402') return credential.payer
  const parsed = parseMppCredential(credential.value)
  if (!parsed.ok || parsed.value.challenge.method !== 'evm') return undefined
  const { from } = parsed.value.payload
  return typeof from === 'string' ? from : undefined
}

/** Whether the credential can be used any number of times. The test environment has one such stub. */
export function isReusable({ value }: Credential): boolean {
  return value === 'stub_payment_accepted'
}

/** Base64 contains no comma, so each comma starts another copy of the header. */
function countOf(value: string): number {
  return value === '' ? 0 : value.split(',').filter((part) => part.trim() !== '').length
}

/** The header may contain other schemes, and commas within quoted strings. A stub payment is forwarded without its scheme. */
function paymentsIn(value = ''): string[] {
  return mppCredentialsIn(value).map((payment) => payment.replace(/^Payment\s+(?=stub_payment_)/i, ''))
}

function x402Of(value: string, responseHeader: X402Credential['responseHeader']): X402Credential {
  const payload = decodeHeader(value)
  const named = isRecord(payload?.accepted) ? payload.accepted.network : payload?.network
  const network = typeof named === 'string' ? named : 'stub'
  const authorization = isRecord(payload?.payload) ? payload.payload.authorization : undefined
  const payer = isRecord(authorization) && typeof authorization.from === 'string' ? authorization.from : undefined
  return { protocol: 'x402', value, responseHeader, network, paymentId: paymentIdOf(payload?.extensions), payer }
}

/** An id outside the limits of the extension is ignored. */
const paymentIdPattern = /^[a-zA-Z0-9_-]{16,128}$/

function paymentIdOf(extensions: unknown): string | undefined {
  const extension = isRecord(extensions) ? extensions['payment-identifier'] : undefined
  const id = isRecord(extension) && isRecord(extension.info) ? extension.info.id : undefined
  return typeof id === 'string' && paymentIdPattern.test(id) ? id : undefined
}
