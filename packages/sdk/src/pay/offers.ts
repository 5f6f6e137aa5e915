import { type Address, type Network, parseAddress, parseRaw, type TokenInfo } from '@purser/protocol'
import { usdOf } from './dollars.ts'
import type { Refusal, RefusalReason } from './errors.ts'
import type { Payer } from './payer.ts'
import type { Quote } from './payment.ts'

/** An offer, read: payable, or why not. */
export type Reading = { readonly quote: Quote } | { readonly refusal: Refusal }

/** What every offer says, as the seller wrote it. */
export interface Asked {
  readonly network: Network | undefined
  readonly asset: string
  readonly amount: string
  readonly payTo: string
}

/** The same in our terms. */
export interface Price {
  readonly network: Network
  readonly token: TokenInfo
  readonly rawAmount: bigint
  readonly usd: bigint
  readonly payTo: Address
}

/**
 * What an offer costs in real dollars, or why it cannot be said. Only tokens that are known count: what a seller writes about another
 * one's name, decimals or worth proves nothing.
 */
export function priceOf(payer: Payer, { network, asset, amount, payTo }: Asked): Price | RefusalReason {
  if (network === undefined) return 'unknown-network'
  if (payer.limits.networks?.has(network.name) === false) return 'network-not-allowed'
  const token = payer.tokenAt(network, asset)
  if (token === undefined) return 'unknown-token'
  const rawAmount = parseRaw(amount)
  const receiver = parseAddress(payTo)
  if (typeof rawAmount !== 'bigint' || receiver === undefined || /^0x0{40}$/.test(receiver)) return 'malformed'
  return { network, token, rawAmount, usd: usdOf(rawAmount, token), payTo: receiver }
}

/** An offer that is not taken. Its name is the seller's text, so only tame characters of it are shown. */
export function refused(offer: readonly string[], reason: RefusalReason): Reading {
  const tame = offer.map((part) => (/^[\w:.-]{1,64}$/.test(part) ? part : '?'))
  return { refusal: { offer: tame.join(' '), reason } }
}
