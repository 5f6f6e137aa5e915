import { discard } from './bounded.ts'
import { choose, whyNotThere } from './choose.ts'
import { PaymentOutcomeUnknownError, SigningError, UnsupportedPaymentError } from './errors.ts'
import type { PayingFetchOptions } from './options.ts'
import { type Payer, payerOf } from './payer.ts'
import type { Credential, PaymentRecord } from './payment.ts'
import { type Call, callOf } from './request.ts'
import { type Reservation, reserve, signReserved } from './reserve.ts'
import { sendPaid } from './send.ts'
import { sendUnpaid } from './sessions.ts'

/**
 * A `fetch` that pays: it answers a 402 of x402 (version 2 and 1) or MPP (`evm/charge`, `tempo/charge`) with one signed payment, within the
 * limits, and gives the seller's next answer. It signs at most once per call. A 402 of another kind, and every other answer, is passed on
 * as it is. A session that a payment bought (`X-Service-Session-Id`) is shown in the calls after it, which are then not paid. Throws `LimitExceededError`, `UnsupportedPaymentError`, `ConfirmationDeclinedError`, `SigningError` and
 * `UnreplayableBodyError` when nothing was sent, `PaymentRejectedError` and `PaymentOutcomeUnknownError` when something was, and what the
 * underlying `fetch` throws when the first request fails.
 */
export function createPayingFetch(options: PayingFetchOptions): typeof globalThis.fetch {
  const payer = payerOf(options)
  return async (input, init) => {
    const call = await callOf(input, init)
    const { response, readings } = await sendUnpaid(payer, call)
    if (readings.length === 0) return response
    discard(response)
    const url = askingUrl(payer, call, response)
    const reservation = await reserve(payer, url, choose(payer, readings))
    const credential = await credentialFor(payer, call, reservation)
    return sendPaid({ payer, call, url, reservation, credential }, call.signal)
  }
}

/**
 * The address that asks for money, if it may be paid: the one that was called. After a redirect it is another one, where a body or a header
 * of the caller may not belong, so its own address must be called for it to be paid.
 */
function askingUrl(payer: Payer, call: Call, response: Response): URL {
  const isElsewhere = response.url !== '' && withoutHash(response.url) !== withoutHash(call.url.href)
  const reason = response.redirected || isElsewhere ? 'redirected' : whyNotThere(payer, call.url)
  if (reason !== undefined) throw new UnsupportedPaymentError([{ offer: '*', reason }])
  return call.url
}

function withoutHash(url: string): string {
  const parsed = new URL(url)
  parsed.hash = ''
  return parsed.href
}

async function credentialFor(payer: Payer, call: Call, reservation: Reservation): Promise<Credential> {
  try {
    return await signReserved(payer, call, reservation)
  } catch (error) {
    if (!(error instanceof SigningError) || !reservation.quote.spendsOnSigning) throw error
    throw pushFailed(payer, reservation, error)
  }
}

/** The signer was to send the money itself and failed: it may have been sent, and there is no hash to show for it. */
function pushFailed(payer: Payer, { id, payment }: Reservation, cause: SigningError): PaymentOutcomeUnknownError {
  const facts = { validBeforeSeconds: undefined, status: undefined, txHash: undefined, receipt: undefined }
  const record: PaymentRecord = { ...payment, ...facts, outcome: 'unknown', reservationId: id }
  payer.report(record)
  return new PaymentOutcomeUnknownError(
    record,
    { credential: undefined, retry: () => Promise.reject(cause) },
    cause.cause,
  )
}
