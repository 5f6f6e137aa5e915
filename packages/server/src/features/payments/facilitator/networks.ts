import type { Address, Network } from '@purser/protocol'
import { refused } from '../credential.ts'
import type { Ctx } from '../ports.ts'

/** Returns the networks on which the caller's environment can be paid: test networks for a test key, mainnets for a live key. */
export function servedNetworks(ctx: Pick<Ctx, 'chains' | 'tenant'>): readonly Network[] {
  const isTest = ctx.tenant.environment === 'test'
  return ctx.chains.configured.filter((network) => network.settlesEip3009 && network.isTestnet === isTest)
}

/** Refuses a payment on a network that is not served. This is not a failure of a node. */
export function refuseUnserved(ctx: Pick<Ctx, 'chains' | 'tenant'>, network: Network, payer: Address): void {
  if (servedNetworks(ctx).some(({ caip2 }) => caip2 === network.caip2)) return
  throw refused('invalid_network', { payer, message: `${network.caip2} is not served in this environment` })
}
