import type { Address, MppReceipt, Network, NetworkName, SettleResponse, TokenInfo } from '@purser/protocol'
import { formatUsd } from './dollars.ts'

/** The two families of payment protocols that are spoken here. */
export type Protocol = 'x402' | 'mpp'

/** What exactly is spoken: x402 `exact` in its second or first version, or a method of MPP. */
export type Method = 'x402/v2' | 'x402/v1' | 'mpp/evm-charge' | 'mpp/tempo-charge'

/** A payment before it is signed: what `confirm` is asked about. */
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
 * `paid`: the seller answered with success. `rejected`: it refused the credential. `unknown`: it may or may not take the money. Only the
 * chain says for certain, so all three are counted as spent.
 */
export type Outcome = 'paid' | 'rejected' | 'unknown'

/** A payment whose credential was sent. */
export interface PaymentRecord extends ProposedPayment {
  readonly outcome: Outcome
  /** The id under which the ledger counts it. */
  readonly reservationId: string
  /** When the credential ends, in seconds since 1970; `undefined` where the money moved before it was sent. */
  readonly validBeforeSeconds: number | undefined
  /** The HTTP status of the answer, if there was one. */
  readonly status: number | undefined
  /** As the seller states it; it is not looked up on the chain. */
  readonly txHash: string | undefined
  readonly receipt: SettleResponse | MppReceipt | undefined
}

const records = new WeakMap<Response, PaymentRecord>()

/** The payment that bought a response of a paying fetch; `undefined` where nothing was paid for it. */
export function paymentOf(response: Response): PaymentRecord | undefined {
  return records.get(response)
}

/** Lets `paymentOf` find the record. */
export function attachPayment(response: Response, record: PaymentRecord): void {
  records.set(response, record)
}

/** One way to pay that may be signed: a token that is known, on a network that is allowed. */
export interface Quote {
  readonly protocol: Protocol
  readonly method: Method
  readonly network: Network
  readonly token: TokenInfo
  readonly rawAmount: bigint
  /** In units of 10^-18 dollars. */
  readonly usd: bigint
  readonly payTo: Address
  /** After this moment the offer must not be taken; `undefined` where it does not end. */
  readonly expiresAtMs: number | undefined
  /** Whether `sign` itself moves the money, so that its failure says nothing about whether it did. */
  readonly spendsOnSigning: boolean
  readonly sign: () => Promise<Credential>
}

/** What is put into the request: a header, and until when somebody who holds it can take the money. */
export interface Credential {
  readonly header: string
  readonly value: string
  readonly validBeforeSeconds: number | undefined
}

/** What a quote will be called towards the caller. */
export function proposalOf(url: URL, quote: Quote): ProposedPayment {
  return {
    url: url.href,
    host: url.hostname,
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
