import { must, mustOptions } from '../check.ts'
import { discard } from './bounded.ts'
import { choose, whyNotThere } from './choose.ts'
import { PaymentOutcomeUnknownError, PurchaseError, SigningError, UnsupportedPaymentError } from './errors.ts'
import type { LedgerEntry } from './ledger.ts'
import type { PayingFetch, PayingFetchOptions, PayingRequestInit } from './options.ts'
import { type Payer, payerOf } from './payer.ts'
import type { Credential, PaymentRecord, Quote } from './payment.ts'
import { type Call, callOf } from './request.ts'
import { type Reservation, reserve, signReserved } from './reserve.ts'
import { type Sending, sendPaid, unknownOutcome } from './send.ts'
import { sendUnpaid } from './sessions.ts'
import { payFromWallet, type WalletFetchOptions, walletPayer } from './wallet.ts'

/**
 * Returns a `fetch` that pays. It answers a 402 of x402 (versions 2 and 1) or MPP (`evm/charge`, `tempo/charge`) with
 * one signed payment within the limits, by your signer or by a managed wallet (`wallet`), and returns the seller's next
 * response. It signs at most once per call, and at most once for a `purchase` that the call names; with a managed wallet
 * at most once in a day. Other 402s and all other responses are returned unchanged. A session from a payment (`X-Service-Session-Id`) is sent with later calls,
 * which are then not paid. Throws `LimitExceededError`, `UnsupportedPaymentError`, `ConfirmationDeclinedError`,
 * `PurchaseError`, `SigningError` and `UnreplayableBodyError` if nothing was sent, `PaymentRejectedError` or
 * `PaymentOutcomeUnknownError` if a payment was sent, and what the underlying `fetch` throws if the first request fails.
 *
 * @example
 * import { createPayingFetch } from '@purser/sdk/pay'
 * import { privateKeyToAccount } from 'viem/accounts'
 *
 * const signer = privateKeyToAccount('0x0000000000000000000000000000000000000000000000000000000000000001')
 * const pay = createPayingFetch({ signer, limits: { perCall: '0.05', perDay: '5' } })
 * const response = await pay('https://api.example.com/forecast')
 */
export function createPayingFetch(options: PayingFetchOptions | WalletFetchOptions): PayingFetch {
  mustOptions(options, 'The first argument')
  return 'wallet' in options ? walletFetch(options) : keyFetch(payerOf(options))
}

function walletFetch(options: WalletFetchOptions): PayingFetch {
  const payer = walletPayer(options)
  return async (input, init) => {
    const purchase = purchaseOf(init)
    const call = await callOf(input, init)
    const { response, readings } = await sendUnpaid(payer, call)
    if (readings.length === 0) return response
    try {
      const url = payableUrl(payer, call, response)
      const paid = await payFromWallet(payer, options, { url, response, readings, purchase })
      return await sendPaid({ payer, call, url, ...paid }, call.signal)
    } finally {
      discard(response)
    }
  }
}

function keyFetch(payer: Payer): PayingFetch {
  return async (input, init) => {
    const purchase = purchaseOf(init)
    const call = await callOf(input, init)
    const earlier = purchase === undefined ? undefined : await payer.ledger.find(purchase)
    if (earlier !== undefined) return sendAgain(payer, call, earlier)
    const { response, readings } = await sendUnpaid(payer, call)
    if (readings.length === 0) return response
    discard(response)
    const url = payableUrl(payer, call, response)
    const reservation = await reserve(payer, { url, purchase, quotes: choose(payer, readings) })
    if ('state' in reservation) return sendAgain(payer, call, reservation)
    const credential = await credentialFor(payer, call, reservation)
    const sending = { payer, call, url, reservation, credential }
    await record(sending, reservation.quote)
    return sendPaid(sending, call.signal)
  }
}

const purchaseLengthMax = 200

function purchaseOf({ purchase }: PayingRequestInit = {}): string | undefined {
  const isName = typeof purchase === 'string' && purchase.length > 0 && purchase.length <= purchaseLengthMax
  must(purchase === undefined || isName, 'purchase', purchase, `Give text of 1 to ${purchaseLengthMax} characters.`)
  return purchase
}

/** Sends what was signed for this purchase. It can be charged once at most. */
async function sendAgain(payer: Payer, call: Call, entry: LedgerEntry): Promise<Response> {
  const { id, payment, credential } = entry
  const reason = whyNotThere(payer, call.url)
  if (reason !== undefined) throw new UnsupportedPaymentError([{ offer: '*', reason }])
  if (withoutHash(payment.url) !== withoutHash(call.url.href)) throw new PurchaseError('purchase-mismatch', entry)
  if (credential === undefined) throw new PurchaseError('purchase-unfinished', entry)
  const { header, value, validBeforeSeconds } = credential
  const reservation = { id, payment }
  return sendPaid(
    { payer, call, url: call.url, reservation, credential: { header, value, validBeforeSeconds } },
    call.signal,
  )
}

/** Records the credential. One that is not recorded is not sent, because another process could sign again. */
async function record(sending: Sending, { spendsOnSigning }: Quote): Promise<void> {
  const { payer, reservation, credential } = sending
  try {
    await payer.ledger.signed(reservation.id, credential)
  } catch (error) {
    if (spendsOnSigning) throw unknownOutcome(sending, undefined, error)
    await payer.release(reservation.id)
    throw error
  }
}

/**
 * The URL to pay, if it may be paid: only the URL that was called. A redirect target must be called directly to be
 * paid, because the caller's body and headers may not be meant for it.
 */
function payableUrl(payer: Payer, call: Call, response: Response): URL {
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

/** A signer that sends the transaction itself failed: the money may have been sent, but its hash is unknown. */
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
