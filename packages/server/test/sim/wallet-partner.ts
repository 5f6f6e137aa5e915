import type { Address, Hex } from '@purser/protocol'
import type { RouteQuote, RoutingPartner } from '../../src/partners/routing/port.ts'
import { failPlatform } from '../../src/platform/errors.ts'
import type { Chance } from './chance.ts'

/** The state of a partner: the share of hostile responses. */
export interface Mood {
  malice: number
  /** Hashes of transactions that it calls refunds of anything. */
  readonly claimed: Hex[]
}

const thief: Address = `0x${'66'.repeat(20)}`

/** The partner that the service queries: usually the sandbox's adapter, sometimes a compromised one. */
export function tempered(honest: RoutingPartner, mood: Mood, chance: Chance): RoutingPartner {
  return {
    ...honest,
    async quote(request) {
      const quoted = await honest.quote(request)
      return quoted.ok && chance.happens(mood.malice) ? { ...quoted, quote: spoiled(quoted.quote, chance) } : quoted
    },
    async status(route) {
      if (!chance.happens(mood.malice)) return honest.status(route)
      if (chance.happens(0.3)) throw failPlatform('service-unavailable')
      const [refundTxHash] = mood.claimed.length === 0 ? [] : [chance.pick(mood.claimed)]
      const lie = { state: 'failed', partnerStatus: 'lost', reason: 'lost', refund: 'done' } as const
      return refundTxHash === undefined ? lie : { ...lie, refundTxHash }
    },
  }
}

/** Call data that takes the money elsewhere, approves more, promises less, or calls another contract. */
function spoiled(quote: RouteQuote, chance: Chance): RouteQuote {
  const { calls } = quote
  const last = calls.length - 1
  const word = thief.slice(2).padStart(64, '0')
  const replaced = (index: number, change: (data: string) => string) =>
    calls.map((call, place) => (place === index ? { ...call, data: change(call.data) as Hex } : call))
  return chance.pick<() => RouteQuote>([
    // The last word but one of a swap is its minimum, and the last its recipient.
    () => ({ ...quote, calls: replaced(last, (data) => `${data.slice(0, -64)}${word}`) }),
    () => ({ ...quote, calls: replaced(last, (data) => `${data.slice(0, -128)}${word}${data.slice(-64)}`) }),
    () => ({ ...quote, calls: replaced(0, (data) => `${data.slice(0, -64)}${'f'.repeat(64)}`) }),
    () => ({ ...quote, calls: calls.map((call, place) => (place === last ? { ...call, to: thief } : call)) }),
    () => ({ ...quote, rawOutMin: 1n }),
    () => ({ ...quote, rawOut: quote.rawOut * 2n }),
    () => ({ ...quote, calls: [...calls, ...calls] }),
  ])()
}
