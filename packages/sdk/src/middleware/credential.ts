import { parseMppCredential } from '@purser/protocol'
import { isRecord } from '../problem.ts'
import { decodeHeader } from './headers.ts'

/** A payment as the caller sent it. Nothing in it is true before Purser has verified it. */
export type Credential = X402Credential | MppSent

export interface X402Credential {
  readonly protocol: 'x402'
  /** The header's raw value. */
  readonly value: string
  /** The header that answers it: version 2 of x402 reads one, version 1 the other. */
  readonly responseHeader: 'PAYMENT-RESPONSE' | 'X-PAYMENT-RESPONSE'
  /** The network as the payer named it, CAIP-2 in version 2, a name in version 1; `stub` for a payment that is none. */
  readonly network: string
  /** The payer's own name for the payment (x402 extension `payment-identifier`), under which a repeat is answered. */
  readonly paymentId: string | undefined
  /** The account that the payment says it is of. */
  readonly payer: string | undefined
}

export interface MppSent {
  readonly protocol: 'mpp'
  /** Scheme and token, or a stub alone: what else stood in the header, such as a `Bearer` key, is not passed on. */
  readonly value: string
}

type Headers = (name: string) => string | undefined

/**
 * Finds the payment of a request: `none`, `ambiguous` when there are several, in whatever headers and protocols, or the
 * credential. Copies joined with commas in one header count as several (MPP: draft-httpauth-payment-00, one credential
 * for each request).
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

/** Whether the payer has broadcast the transaction himself (MPP, a credential of type `hash`). */
export function isPush(credential: Credential): boolean {
  if (credential.protocol !== 'mpp') return false
  const parsed = parseMppCredential(credential.value)
  return parsed.ok && parsed.value.payload.type === 'hash'
}

/** Whether verifying the payment may move money: on Tempo the transaction is broadcast. An `evm/charge` is settled later. */
export function movesAtVerify(credential: Credential): boolean {
  if (credential.protocol !== 'mpp') return false
  const parsed = parseMppCredential(credential.value)
  return !parsed.ok || parsed.value.challenge.method !== 'evm'
}

/**
 * The account that a credential says it is of, before anything was verified; undefined where it moves money at verify or before, or says
 * nothing. Who names another account than its own has a payment that is not good.
 */
export function claimedPayer(credential: Credential): string | undefined {
  if (credential.protocol === 'x402') return credential.payer
  const parsed = parseMppCredential(credential.value)
  if (!parsed.ok || parsed.value.challenge.method !== 'evm') return undefined
  const { from } = parsed.value.payload
  return typeof from === 'string' ? from : undefined
}

/** Whether the credential buys as often as it is shown: the test environment has one. */
export function isReusable({ value }: Credential): boolean {
  return value === 'stub_payment_accepted'
}

/** Base64 has no comma, so each one begins another copy of the header. */
function countOf(value: string): number {
  return value === '' ? 0 : value.split(',').filter((part) => part.trim() !== '').length
}

/** Other schemes may stand beside the payment, with quoted strings in which a comma separates nothing. */
const quoted = /"(?:[^"\\]|\\.)*(?:"|$)/g

function paymentsIn(value: string | undefined): string[] {
  if (value === undefined) return []
  const elements = value.replaceAll(quoted, '""').split(',')
  const payments = elements.map((element) => element.trim()).filter((element) => /^Payment\s/i.test(element))
  return payments.map((payment) => payment.replace(/^Payment\s+(?=stub_payment_)/i, ''))
}

function x402Of(value: string, responseHeader: X402Credential['responseHeader']): X402Credential {
  const payload = decodeHeader(value)
  const named = isRecord(payload?.accepted) ? payload.accepted.network : payload?.network
  const network = typeof named === 'string' ? named : 'stub'
  const authorization = isRecord(payload?.payload) ? payload.payload.authorization : undefined
  const payer = isRecord(authorization) && typeof authorization.from === 'string' ? authorization.from : undefined
  return { protocol: 'x402', value, responseHeader, network, paymentId: paymentIdOf(payload?.extensions), payer }
}

/** An id outside of the extension's own limits is nobody's id. */
const paymentIdPattern = /^[a-zA-Z0-9_-]{16,128}$/

function paymentIdOf(extensions: unknown): string | undefined {
  const extension = isRecord(extensions) ? extensions['payment-identifier'] : undefined
  const id = isRecord(extension) && isRecord(extension.info) ? extension.info.id : undefined
  return typeof id === 'string' && paymentIdPattern.test(id) ? id : undefined
}
