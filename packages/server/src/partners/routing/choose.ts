import { isTempo, sameAddress } from '@purser/protocol'
import type { Environment } from '../../platform/ctx.ts'
import { cctpDomainOf } from './cctp-contracts.ts'
import type { PartnerName, RouteChoice, RouteEnd } from './port.ts'

/**
 * Chooses the route and the partner. The same token on the same chain needs no partner; another token on the same chain is a swap; another chain is
 * a bridge. The test environment uses the sandbox. Otherwise Relay serves routes from or to Tempo, Circle's CCTP serves USDC between its chains,
 * and LI.FI serves the rest. Does not check that the partner is configured.
 */
export function chooseRoute(
  ends: { readonly from: RouteEnd; readonly to: RouteEnd },
  environment: Environment,
): RouteChoice {
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

function partnerFor(
  { from, to }: { readonly from: RouteEnd; readonly to: RouteEnd },
  environment: Environment,
): readonly [PartnerName, string] {
  if (environment === 'test') return ['sandbox', 'the test environment uses the sandbox']
  if (isTempo(from.network) || isTempo(to.network)) return ['relay', 'Relay serves Tempo']
  const isUsdc = from.token.symbol === 'USDC' && to.token.symbol === 'USDC'
  if (isUsdc && cctpDomainOf(from.network) !== undefined && cctpDomainOf(to.network) !== undefined)
    return ['cctp', 'Circle burns USDC on one chain and mints it on the other']
  return ['lifi', 'LI.FI finds the route']
}
