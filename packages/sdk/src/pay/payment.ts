import {
  type Address,
  formatUsd,
  type MppReceipt,
  type NetworkName,
  type PayingMethod,
  type PayingProtocol,
  type Price,
  type SettleResponse,
} from '@purser/protocol'

export type Protocol = PayingProtocol
export type Method = PayingMethod

/** A payment before it is signed, as passed to `confirm`. */
export interface ProposedPayment {
  readonly url: string
  readonly host: string
  readonly protocol: Protocol
  readonly method: Method
  /** Decimal dollars. */
  readonly amountUsd: string
  /** In the token's smallest unit. */
  readonly amount: string
  readonly token: string
  readonly asset: Address
  readonly network: NetworkName
  readonly payTo: Address
}

/**
 * `paid`: the seller responded with success. `rejected`: the seller refused the credential. `unknown`: the seller may
 * or may not take the money. Only the chain is authoritative, so all three count as spent.
 */
export type Outcome = 'paid' | 'rejected' | 'unknown'

/** A payment whose credential was sent. */
export interface PaymentRecord extends ProposedPayment {
  readonly outcome: Outcome
  /** The id of the reservation in the ledger. */
  readonly reservationId: string
  /** The expiry of the credential, in seconds since 1970. `undefined` if the money moved before it was sent. */
  readonly validBeforeSeconds: number | undefined
  /** The HTTP status of the response, if there was one. */
  readonly status: number | undefined
  /** As stated by the seller. Not checked on the chain. */
  readonly txHash: string | undefined
  readonly receipt: SettleResponse | MppReceipt | undefined
}

const records = new WeakMap<Response, PaymentRecord>()

/**
 * The payment for a response of a paying fetch, or `undefined` if nothing was paid for it.
 *
 * @example
 * import { paymentOf } from '@purser/sdk/pay'
 *
 * export async function costOf(pay: typeof fetch, url: string): Promise<string> {
 *   return paymentOf(await pay(url))?.amountUsd ?? '0'
 * }
 */
export function paymentOf(response: Response): PaymentRecord | undefined {
  return records.get(response)
}

/** Attaches the record for `paymentOf`. */
export function attachPayment(response: Response, record: PaymentRecord): void {
  records.set(response, record)
}

/** A payable offer: a known token on an allowed network. */
export interface Quote extends Price {
  readonly protocol: Protocol
  readonly method: Method
  /** The expiry of the offer, in milliseconds since 1970. `undefined` if it does not expire. */
  readonly expiresAtMs: number | undefined
  /** Whether `sign` itself moves the money. If so, its failure leaves the outcome unknown. */
  readonly spendsOnSigning: boolean
  readonly sign: () => Promise<Credential>
}

/** The header to send, and until when it can be used to take the money. */
export interface Credential {
  readonly header: string
  readonly value: string
  readonly validBeforeSeconds: number | undefined
}

/** A quote in the form that is shown to the caller. */
export function proposalOf(url: URL, quote: Quote): ProposedPayment {
  return {
    url: url.href,
    // DNS reads a name with a final dot as the same one.
    host: url.hostname.replace(/\.$/, ''),
    protocol: quote.protocol,
    method: quote.method,
    amountUsd: formatUsd(quote.usd),
    amount: quote.rawAmount.toString(),
    token: quote.token.symbol,
    asset: quote.token.address,
    network: quote.network.name,
    payTo: quote.payTo,
  }
}
