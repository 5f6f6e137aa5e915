import { sameAddress } from '@purser/protocol'
import type { Environment } from '../../platform/ctx.ts'
import { routingAdapters } from '../adapters.ts'
import type { RouteChoice, RouteEnds } from './port.ts'

/**
 * Chooses the route and the partner. The same token on the same chain needs no partner; another token on the same chain is a swap; another chain is
 * a bridge. The first partner of the environment's list that serves the route is chosen, whether it is configured or not.
 */
export function chooseRoute(ends: RouteEnds, environment: Environment): RouteChoice {
  const { from, to } = ends
  const isSameChain = from.network.name === to.network.name
  if (isSameChain && sameAddress(from.token.address, to.token.address))
    return { route: 'direct', why: `${from.token.symbol} stays ${to.token.symbol} on ${from.network.name}.` }
  const route = isSameChain ? 'partner-swap' : 'partner-bridge'
  const what = isSameChain
    ? `${from.token.symbol} becomes ${to.token.symbol} on ${from.network.name}`
    : `${from.token.symbol} goes from ${from.network.name} to ${to.network.name}${from.token.symbol === to.token.symbol ? '' : ` as ${to.token.symbol}`}`
  const [partner, because] = partnerFor(ends, environment)
  return { route, partner, why: `${what}: ${because}.` }
}

function partnerFor(ends: RouteEnds, environment: Environment): readonly [name: string, why: string] {
  for (const adapter of routingAdapters) {
    const why = adapter.environment === environment ? adapter.whyServing(ends) : undefined
    if (why !== undefined) return [adapter.name, why]
  }
  throw new Error(`the last partner of ${environment} serves every route`)
}
