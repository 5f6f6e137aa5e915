import type { Purser } from '../client.ts'
import type { Challenge } from '../payments.ts'
import type { ChallengeAsked } from './contract.ts'

/** A challenge nearer to its end than this is thrown away: a payer needs time to sign. */
const remainingMsMin = 60_000
const routesMax = 1_000
const batchMax = 100
/** In all stocks together, about 30 MB: whoever varies the query makes the provider fetch a batch for each. */
const challengesMax = 10_000

export type TakeChallenge = (request: ChallengeAsked) => Promise<Challenge>

/** The challenges of one route and price that nobody has been shown. */
interface Stock {
  readonly items: Challenge[]
  /** The batch under way: everybody who finds the stock empty waits for the same one. */
  loading: Promise<void> | undefined
}

/**
 * Challenges fetched ahead, `count` at a time for each route and price, the next batch while half of the last is still
 * there. Each is handed out once and never again: a challenge that two payers saw would let one of them answer for the
 * other. One that is bound to a body is asked for by itself.
 */
export function challengesAhead(purser: Purser, count: number, now: () => number = Date.now): TakeChallenge {
  if (count <= 1) return (request) => purser.payments.challenge(request)
  const batch = Math.min(count, batchMax)
  const stocks = new Map<string, Stock>()

  return async ({ ip: _, ...request }) => {
    if (request.digest !== undefined) return purser.payments.challenge(request)
    const stock = stockOf(stocks, JSON.stringify(request), Math.min(routesMax, challengesMax / batch))
    const load = () => {
      stock.loading ??= purser.payments
        .challenges({ ...request, count: batch })
        .then((fresh) => void stock.items.unshift(...fresh))
        .finally(() => {
          stock.loading = undefined
        })
      return stock.loading
    }
    const waiting = takeFresh(stock, now())
    if (waiting !== undefined) {
      // Whoever finds the stock empty meets the error, if there is one.
      if (stock.items.length < batch / 2) load().catch(() => undefined)
      return waiting
    }
    for (;;) {
      await load()
      // Fresh from Purser, it is good by Purser's clock, whatever ours says.
      const fetched = stock.items.pop()
      if (fetched !== undefined) return fetched
    }
  }
}

function takeFresh({ items }: Stock, now: number): Challenge | undefined {
  for (let challenge = items.pop(); challenge !== undefined; challenge = items.pop()) {
    if (Date.parse(challenge.expiresAt) - now >= remainingMsMin) return challenge
  }
  return undefined
}

/** Newest routes stay: a caller who varies the query must not fill the memory. */
function stockOf(stocks: Map<string, Stock>, key: string, most: number): Stock {
  const known = stocks.get(key)
  if (known !== undefined) return known
  const made: Stock = { items: [], loading: undefined }
  stocks.set(key, made)
  for (const oldest of stocks.keys()) {
    if (stocks.size <= most) break
    stocks.delete(oldest)
  }
  return made
}
