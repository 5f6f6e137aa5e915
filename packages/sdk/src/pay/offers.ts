import { type Address, type Network, parseAddress, parseRaw, type TokenInfo } from '@purser/protocol'
import { usdOf } from './dollars.ts'
import type { Refusal, RefusalReason } from './errors.ts'
import type { Payer } from './payer.ts'
import type { Quote } from './payment.ts'

/** A parsed offer: payable, or the reason why not. */
export type Reading = { readonly quote: Quote } | { readonly refusal: Refusal }

/** The price of an offer, as the seller wrote it. */
export interface Requested {
  readonly network: Network | undefined
  readonly asset: string
  readonly amount: string
  readonly payTo: string
}

/** A validated price. */
export interface Price {
  readonly network: Network
  readonly token: TokenInfo
  readonly rawAmount: bigint
  readonly usd: bigint
  readonly payTo: Address
}

/**
 * The dollar price of an offer, or why it is unknown. Only registered tokens are priced: a seller's claims about the
 * name, decimals or value of another token are not trusted.
 */
export function priceOf(payer: Payer, { network, asset, amount, payTo }: Requested): Price | RefusalReason {
  if (network === undefined) return 'unknown-network'
  if (payer.limits.networks?.has(network.name) === false) return 'network-not-allowed'
  const token = payer.tokenAt(network, asset)
  if (token === undefined) return 'unknown-token'
  const rawAmount = parseRaw(amount)
  const receiver = parseAddress(payTo)
  if (typeof rawAmount !== 'bigint' || receiver === undefined || /^0x0{40}$/.test(receiver)) return 'malformed'
  return { network, token, rawAmount, usd: usdOf(rawAmount, token), payTo: receiver }
}

/** A refused offer. Its name is the seller's text, so only safe characters of it are shown. */
export function refused(offer: readonly string[], reason: RefusalReason): Reading {
  const tame = offer.map((part) => (/^[\w:.-]{1,64}$/.test(part) ? part : '?'))
  return { refusal: { offer: tame.join(' '), reason } }
}
