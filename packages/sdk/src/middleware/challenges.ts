import type { Purser } from '../client.ts'
import type { Challenge } from '../payments.ts'
import type { ChallengeAsked } from './contract.ts'

/** A challenge nearer to its end than this is thrown away: a payer needs time to sign. */
const remainingMsMin = 60_000
const routesMax = 1_000
const stockMax = 100

export type TakeChallenge = (request: ChallengeAsked) => Promise<Challenge>

/**
 * Challenges fetched ahead, `count` at a time for each route and price. Each is handed out once and never again: a
 * challenge that two payers saw would let one of them answer for the other. One that is bound to a body is asked for by
 * itself.
 */
export function challengesAhead(purser: Purser, count: number, now: () => number = Date.now): TakeChallenge {
  if (count <= 1) return (request) => purser.payments.challenge(request)
  const stocks = new Map<string, Challenge[]>()

  return async ({ ip: _, ...request }) => {
    if (request.digest !== undefined) return purser.payments.challenge(request)
    const key = JSON.stringify(request)
    const waiting = takeFresh(stocks.get(key), now())
    if (waiting !== undefined) return waiting
    const [first, ...others] = await purser.payments.challenges({ ...request, count: Math.min(count, stockMax) })
    if (first === undefined) throw new Error('unreachable: an empty batch is not believed')
    keep(stocks, key, others)
    return first
  }
}

function takeFresh(stock: Challenge[] | undefined, now: number): Challenge | undefined {
  for (let challenge = stock?.pop(); challenge !== undefined; challenge = stock?.pop()) {
    if (Date.parse(challenge.expiresAt) - now >= remainingMsMin) return challenge
  }
  return undefined
}

/** Newest routes stay: a caller who varies the query must not fill the memory. */
function keep(stocks: Map<string, Challenge[]>, key: string, fresh: Challenge[]): void {
  const stock = [...fresh, ...(stocks.get(key) ?? [])].slice(0, stockMax)
  stocks.delete(key)
  stocks.set(key, stock)
  for (const oldest of stocks.keys()) {
    if (stocks.size <= routesMax) break
    stocks.delete(oldest)
  }
}
