import { byPrice, formatUsd, isConfidential, offerOrder } from '@purser/protocol'
import { LimitExceededError, type Refusal, UnsupportedPaymentError } from './errors.ts'
import type { Payer } from './payer.ts'
import type { Quote } from './payment.ts'
import type { Reading } from './quotes.ts'

/**
 * The payable offers in order: by preference, then the cheapest, then x402 before MPP, then in the seller's order.
 * Throws `UnsupportedPaymentError` if there is none, `LimitExceededError` if only `perCall` prevents them.
 */
export function choose(payer: Payer, readings: readonly Reading[]): readonly [Quote, ...Quote[]] {
  const quotes = readings.flatMap((reading) => ('quote' in reading ? [reading.quote] : []))
  const refusals = readings.flatMap((reading) => ('refusal' in reading ? [reading.refusal] : []))
  const [cheapest] = [...quotes].sort(byPrice)
  if (cheapest === undefined) throw new UnsupportedPaymentError(refusals)
  const { perCall } = payer.limits
  const [first, ...others] = quotes.filter(({ usd }) => usd <= perCall).sort(offerOrder(payer.prefer))
  if (first !== undefined) return [first, ...others]
  throw new LimitExceededError({
    limit: 'perCall',
    limitUsd: formatUsd(perCall),
    amountUsd: formatUsd(cheapest.usd),
    spentUsd: '0',
  })
}

/** Returns why a URL may not be paid at all, whatever it offers, or `undefined` if it may. */
export function whyNotThere(payer: Payer, url: URL): Refusal['reason'] | undefined {
  const { hosts } = payer.limits
  const isAllowed = hosts === undefined || hosts.has(url.hostname) || hosts.has(url.host)
  if (!isAllowed) return 'host-not-allowed'
  return payer.allowInsecure || isConfidential(url) ? undefined : 'insecure'
}
