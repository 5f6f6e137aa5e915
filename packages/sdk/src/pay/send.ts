import { readReceipt, readRefusal } from '@purser/protocol'
import { discard } from './bounded.ts'
import { jsonOf, unread } from './challenge.ts'
import { PaymentOutcomeUnknownError, PaymentRejectedError, type Retry } from './errors.ts'
import type { Payer } from './payer.ts'
import { attachPayment, type Credential, type Outcome, type PaymentRecord } from './payment.ts'
import type { Call } from './request.ts'
import type { Reservation } from './reserve.ts'
import { sessionHeader } from './sessions.ts'

/** Everything needed to send a credential, repeatedly. */
export interface Sending {
  readonly payer: Payer
  readonly call: Call
  /** The URL of the 402. The credential is sent only there. */
  readonly url: URL
  readonly reservation: Pick<Reservation, 'id' | 'payment'>
  readonly credential: Credential
}

/**
 * Sends a credential and evaluates the response. No response, a response from another URL, a 5xx and a refusal that
 * passes leave the outcome unknown; other 402s and 409s mean refusal. Everything else is returned, including
 * redirects, which the caller may follow without the credential.
 */
export async function sendPaid(sending: Sending, signal?: AbortSignal): Promise<Response> {
  const { call, url, credential, payer } = sending
  const headers = new Headers(call.headers)
  headers.set(credential.header, credential.value)
  let response: Response
  try {
    response = await call.send(payer.fetch, { headers, redirect: 'manual', signal: signal ?? null })
  } catch (error) {
    throw unknownOutcome(sending, undefined, error)
  }
  if (response.url !== '' && new URL(response.url).origin !== url.origin) throw unknownOutcome(sending, response)
  return judge(sending, response)
}

async function judge(sending: Sending, response: Response): Promise<Response> {
  if (response.status >= 500) throw unknownOutcome(sending, response)
  if (response.status === 402 || response.status === 409) {
    const body = await jsonOf(response)
    const header = (name: string): string | null => response.headers.get(name)
    const { isPassing, ...why } = readRefusal({ status: response.status, header, body, isBodyRead: body !== unread })
    if (isPassing) throw unknownOutcome(sending, response)
    throw new PaymentRejectedError(reported(sending, 'rejected', response), response, why)
  }
  const record = reported(sending, response.ok ? 'paid' : 'unknown', response)
  if (response.ok) {
    await sending.payer.spent(sending.reservation.id)
    keepSession(sending, response)
  }
  attachPayment(response, record)
  return response
}

function keepSession({ payer, url, reservation }: Sending, { headers }: Response): void {
  const token = headers.get(sessionHeader)
  if (token !== null) payer.sessions?.keep(url.origin, { payTo: reservation.payment.payTo, token })
}

/** The error for a payment whose credential can still be charged. */
export function unknownOutcome(
  sending: Sending,
  response: Response | undefined,
  cause?: unknown,
): PaymentOutcomeUnknownError {
  const { header, value } = sending.credential
  const retry: Retry = ({ signal } = {}) => sendPaid(sending, signal)
  const record = reported(sending, 'unknown', response)
  discard(response)
  return new PaymentOutcomeUnknownError(record, { credential: { header, value }, retry }, cause)
}

function reported({ payer, reservation, credential }: Sending, outcome: Outcome, response?: Response): PaymentRecord {
  const receipt = response && readReceipt((name) => response.headers.get(name))
  const record: PaymentRecord = {
    ...reservation.payment,
    outcome,
    reservationId: reservation.id,
    validBeforeSeconds: credential.validBeforeSeconds,
    status: response?.status,
    txHash: receipt?.txHash,
    receipt: receipt?.receipt,
  }
  payer.report(record)
  return record
}
