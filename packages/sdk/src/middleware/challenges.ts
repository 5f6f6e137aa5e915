import type { Purser } from '../client.ts'
import type { Challenge } from '../payments.ts'
import type { ChallengeRequested } from './contract.ts'

/** A challenge that expires sooner than this is discarded, because a payer needs time to sign. */
const remainingMsMin = 60_000
const routesMax = 1_000
const batchMax = 100
/**
 * The maximum number of unused challenges of all routes together, about 30 MB. Without a limit, a caller who varies the
 * query could fill the memory: each variant makes the provider fetch a batch.
 */
const challengesMax = 10_000

export type TakeChallenge = (request: ChallengeRequested) => Promise<Challenge>

/** The unused challenges of one route and price. */
interface Stock {
  readonly items: Challenge[]
  /** The batch being fetched. All requests that find no challenge wait for it. */
  loading: Promise<void> | undefined
}

/**
 * Fetches challenges ahead, `count` at a time per route and price. The next batch is fetched when half of the last is
 * used. Each challenge is handed out once: if two payers saw the same challenge, one could answer for the other. A
 * challenge bound to a body is fetched individually.
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
      // Errors are ignored here. A request that finds no challenge loads again and gets the error.
      if (stock.items.length < batch / 2) load().catch(() => undefined)
      return waiting
    }
    for (;;) {
      await load()
      // A fresh challenge is valid by Purser's clock, whatever the local clock says.
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

/** Keeps the newest routes, so that a caller who varies the query cannot fill the memory. */
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
