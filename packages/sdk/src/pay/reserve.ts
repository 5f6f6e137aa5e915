import { formatUsd } from '@purser/protocol'
import { ConfirmationDeclinedError, LimitExceededError, SigningError, UnsupportedPaymentError } from './errors.ts'
import type { LedgerEntry, ReservationVerdict } from './ledger.ts'
import type { Payer } from './payer.ts'
import { type Credential, type ProposedPayment, proposalOf, type Quote } from './payment.ts'
import type { Call } from './request.ts'

/** A quote whose amount is reserved in the ledger. */
export interface Reservation {
  readonly id: string
  readonly quote: Quote
  readonly payment: ProposedPayment
}

/** The amount that a call pays, and the name of its purchase. Without a name it is a separate purchase. */
interface PaymentRequest {
  readonly url: URL
  readonly purchase: string | undefined
  readonly quotes: readonly Quote[]
}

type Exceeded = { readonly quote: Quote; readonly verdict: Extract<ReservationVerdict, { readonly limit: unknown }> }

/**
 * Reserves the first quote that fits the limits, before anything is signed, so that simultaneous calls cannot exceed
 * a limit together. A quote that costs more than one that did not fit is not tried. Returns the earlier payment for the
 * purchase, if there is one. Throws `LimitExceededError` if none fits.
 */
export async function reserve(
  payer: Payer,
  { url, purchase, quotes }: PaymentRequest,
): Promise<Reservation | LedgerEntry> {
  let refused: Exceeded | undefined
  for (const quote of quotes) {
    if (refused !== undefined && quote.usd >= refused.quote.usd) continue
    const id = payer.randomHex(16).slice(2)
    const payment = proposalOf(url, quote)
    const day = new Date(payer.now()).toISOString().slice(0, 10)
    const limits = payer.limits.counted
    const verdict = await payer.ledger.reserve({ id, purchase: purchase ?? id, day, payment, limits })
    if (verdict.ok) return { id, quote, payment }
    if ('earlier' in verdict) return verdict.earlier
    refused = { quote, verdict }
  }
  if (refused === undefined) throw new RangeError('nothing to reserve')
  const { limit, spentUsd } = refused.verdict
  const limitUsd = payer.limits.counted[limit]
  throw new LimitExceededError({ limit, limitUsd, amountUsd: formatUsd(refused.quote.usd), spentUsd })
}

/**
 * Confirms and signs the reserved payment. On failure nothing was signed and the reservation is released, except for
 * a push, which may have moved the money.
 */
export async function signReserved(payer: Payer, call: Call, reservation: Reservation): Promise<Credential> {
  const { quote, payment } = reservation
  try {
    await confirm(payer, quote, payment)
    call.signal?.throwIfAborted()
    if (quote.expiresAtMs !== undefined && quote.expiresAtMs <= payer.now()) {
      throw new UnsupportedPaymentError([{ offer: quote.method, reason: 'expired' }])
    }
  } catch (error) {
    await payer.release(reservation.id)
    throw error
  }
  return sign(payer, reservation)
}

async function sign(payer: Payer, reservation: Reservation): Promise<Credential> {
  try {
    return await reservation.quote.sign()
  } catch (error) {
    if (!reservation.quote.spendsOnSigning) await payer.release(reservation.id)
    throw new SigningError(error)
  }
}

async function confirm(payer: Payer, quote: Quote, payment: ProposedPayment): Promise<void> {
  const { confirm: rule } = payer.limits
  if (rule === undefined || quote.usd <= rule.above) return
  if ((await rule.ask(payment)) !== true) throw new ConfirmationDeclinedError(payment)
}
