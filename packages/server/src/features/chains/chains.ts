import { type Chain, chains, type Network, resolveNetwork } from '@purser/protocol'
import type { z } from 'zod'
import type { Chains } from '../../chain/port.ts'
import type { Environment } from '../../platform/ctx.ts'
import { failPlatform } from '../../platform/errors.ts'
import type { Page } from '../../platform/operation.ts'
import { openCursor, type PageQuery, pageOf } from '../../platform/wire.ts'
import { fail } from './errors.ts'
import type { Ctx } from './ports.ts'
import type { ChainRecord, Token } from './schema.ts'

/** What these functions need: the tenant, and which networks have a node. */
type ChainCtx = Pick<Ctx, 'tenant'> & { readonly chains: Pick<Chains, 'explorerUrl' | 'health' | 'tokenDomainState'> }
type Query = z.output<typeof PageQuery>

/** Returns the network of a chain name for this caller; refuses a live key's test chain. */
export function networkFor(chain: Chain, environment: Environment): Network {
  const network = resolveNetwork(chain, environment)
  if (network === undefined) throw fail('chain-not-available')
  return network
}

/** Returns the chains that the calling key can use, in the document's order. */
export function listChains(ctx: ChainCtx, query: Query): Page<ChainRecord> {
  const records = chains.flatMap((name): ChainRecord[] => {
    const network = resolveNetwork(name, ctx.tenant.environment)
    if (network === undefined) return []
    const { chainId, caip2, isTestnet, nativeCoin } = network
    const status = ctx.chains.health(network)?.status ?? null
    const explorerUrl = ctx.chains.explorerUrl(network)
    return [{ name, chainId, network: caip2, isTestnet, nativeCoin, explorerUrl, configured: status !== null, status }]
  })
  return pageOfFixed(records, query)
}

/**
 * Returns the known tokens of the network that the chain name means for this caller. A token whose domain differs on chain from
 * the registry is shown as it can be used: it can be received and sent, but not pay by a signature.
 */
export function listTokens(ctx: ChainCtx, chain: Chain, query: Query): Page<Token> {
  const network = networkFor(chain, ctx.tenant.environment)
  const shown = network.tokens.map((token): Token => {
    const isWrong = ctx.chains.tokenDomainState(network, token) === 'wrong'
    return isWrong ? { ...token, eip3009: false, eip712: null } : { ...token }
  })
  return pageOfFixed(shown, query)
}

/** Returns a page of a list that never changes; its cursor is a position. */
function pageOfFixed<T>(items: readonly T[], { limit, cursor }: Query): Page<T> {
  const key = openCursor(cursor) ?? '0'
  if (!/^\d{1,4}$/.test(key)) {
    throw failPlatform('validation-error', { errors: [{ path: '/cursor', message: 'is not a cursor of this list' }] })
  }
  const start = Number(key)
  return pageOf(items.slice(start, start + limit + 1), limit, () => String(start + limit))
}
