import { bytesToHex, type Network, type TokenInfo } from '@purser/protocol'
import { fail as failChain } from '../../../../chain/errors.ts'
import { separatorOf } from '../../credential.ts'
import type { Ctx } from '../../ports.ts'

/**
 * Compares the domain that signatures are checked against with the token's own domain, once per token and process. If the
 * registry has a wrong domain, it would refuse good payments, or accept payments that can never be settled.
 */
export async function refuseDomainMismatch(ctx: Ctx, network: Network, token: TokenInfo): Promise<void> {
  const known = ctx.chainMemory.checkedDomains
  const key = `${network.caip2}/${token.address}`
  if (known.has(key)) return
  const domain = await ctx.chains.on(network).tokenDomain(token.address)
  const ours = bytesToHex(separatorOf(ctx, network, token))
  if (domain?.separator.toLowerCase() !== ours) {
    ctx.log.error(
      { network: network.name, token: token.symbol, theirs: domain?.separator, ours },
      'a token signs under another domain than the registry says',
    )
    throw failChain('chain-unavailable')
  }
  known.add(key)
}
