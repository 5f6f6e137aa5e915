import { type Network, permit2Proxies, type SupportedKind } from '@purser/protocol'
import { isProblem } from '../../../../platform/errors.ts'
import type { Ctx } from '../../ports.ts'

/**
 * Returns what Permit2 adds to `/supported`: scheme `upto` wherever its proxy has code, with the account that a payer must name.
 * Scheme `exact` by Permit2 needs no kind of its own. A network whose node fails is left out this time; a proxy that was found is
 * not queried again.
 */
export async function permit2Kinds(ctx: Ctx, networks: readonly Network[]): Promise<readonly SupportedKind[]> {
  const offered = await Promise.all(networks.map((network) => hasUptoProxy(ctx, network)))
  return networks
    .filter((_, index) => offered[index])
    .map(({ caip2 }) => ({
      x402Version: 2,
      scheme: 'upto',
      network: caip2,
      extra: { facilitatorAddress: ctx.settlerAddress },
    }))
}

async function hasUptoProxy(ctx: Ctx, network: Network): Promise<boolean> {
  const known = ctx.chainMemory.uptoNetworks
  if (known.has(network.name)) return true
  try {
    if ((await ctx.chains.on(network).code(permit2Proxies.upto)) === '0x') return false
  } catch (error) {
    if (isProblem(error, 'chain-unavailable')) return false
    throw error
  }
  known.add(network.name)
  return true
}
