import { eip2612GasSponsoring, type SupportedKind, supportedResponse } from '@purser/protocol'
import type { z } from 'zod'
import { additionalKinds } from '../methods/index.ts'
import { paymentIdentifierKey } from '../payment-identifier.ts'
import type { Ctx } from '../ports.ts'
import { servedNetworks } from './networks.ts'
import type { Supported } from './schema.ts'

/**
 * Returns the kinds of payment that the caller's environment supports, and the account that settles them. Source: x402
 * specification v2 section 7.3.
 */
export async function supported(ctx: Ctx): Promise<z.input<typeof Supported>> {
  const networks = servedNetworks(ctx)
  const { kinds, signers } = supportedResponse(networks, [ctx.settlerAddress])
  return {
    kinds: [...kinds, ...(await additionalKinds(ctx, networks))].map(asKind),
    extensions: ['bazaar', paymentIdentifierKey, eip2612GasSponsoring],
    signers: Object.fromEntries(Object.entries(signers).map(([family, accounts]) => [family, [...accounts]])),
  }
}

function asKind({ extra, ...kind }: SupportedKind): z.input<typeof Supported>['kinds'][number] {
  return extra === undefined ? kind : { ...kind, extra: { ...extra } }
}
