import { type Chain, chains, resolveNetwork } from '@purser/protocol'
import { z } from 'zod'
import type { Chains } from '../../chain/port.ts'
import { named } from '../../platform/named.ts'
import type { Operation, Page } from '../../platform/operation.ts'
import { openNumberCursor, PageQuery, pageOf } from '../../platform/wire.ts'
import { fail, networkFor } from './networks.ts'
import { type Ctx, type Deps, operation } from './ports.ts'

/** Names of the chains in the API. */
export const ChainName = z
  .enum(chains)
  .describe('Name of a chain. In the test environment, the name of a main network means its test network.')

/**
 * A chain as the calling key sees it: in the test environment a mainnet name means its test network, and everything here but
 * `name` is that network's.
 */
const ChainRecord = z.strictObject({
  name: ChainName,
  chainId: z.int().describe('EIP-155 id of the network.'),
  network: z.string().meta({ description: 'CAIP-2 id.', example: 'eip155:84532' }),
  isTestnet: z.boolean().describe('Whether it is a test network.'),
  nativeCoin: z
    .strictObject({
      symbol: z.string().describe('Symbol of the coin.'),
      decimals: z.int().describe('Decimals of the coin.'),
    })
    .nullable()
    .meta({ description: 'The coin that pays gas; null where gas is paid in stablecoins.' }),
  explorerUrl: z.string().nullable().meta({
    description:
      'Block explorer: a transaction is at `/tx/<hash>`, an account at `/address/<address>`. Null where none knows the chain.',
    example: 'https://sepolia.basescan.org',
  }),
  configured: z.boolean().meta({ description: 'Whether this deployment has a node for it.' }),
  status: z.enum(['unknown', 'up', 'down']).nullable().meta({
    description: 'Whether one of its nodes responds to this process: unknown until it tried, null without a node.',
  }),
})
type ChainRecord = z.input<typeof ChainRecord>

const Token = z.strictObject({
  symbol: z.string().describe('Symbol of the token, by which requests name it.'),
  name: z.string().describe('Name of the token.'),
  address: z.string().describe('Address of the token contract.'),
  decimals: z.int().describe('Decimals of the token.'),
  eip3009: z.boolean().meta({ description: 'Whether a signed authorization (EIP-3009) can move it.' }),
  eip712: z
    .strictObject({
      name: z.string().describe('Name of the domain.'),
      version: z.string().describe('Version of the domain.'),
    })
    .nullable()
    .meta({ description: 'The domain under which the token checks signatures; null where it checks none.' }),
})
type Token = z.input<typeof Token>

const ChainParams = z.strictObject({ chain: ChainName })

named({ ChainName, ChainRecord, Token })

export const chainOperations: readonly Operation<Deps>[] = [
  operation({
    id: 'chains.list',
    needs: { role: 'viewer', scope: 'read' },
    agent: 'reads',
    method: 'GET',
    path: '/wallet-infra/chains',
    summary: 'List the chains that the calling key can use.',
    description:
      '`configured` shows whether this deployment has a node for it; without one, operations that need the chain return 503.',
    query: PageQuery,
    output: ChainRecord,
    list: true,
    run: (ctx, { query }) => listChains(ctx, query),
  }),
  operation({
    id: 'chains.tokens',
    needs: { role: 'viewer', scope: 'read' },
    agent: 'reads',
    method: 'GET',
    path: '/wallet-infra/chains/{chain}/tokens',
    summary: 'List the tokens of a chain.',
    description: 'Requests name a token by its `symbol`.',
    params: ChainParams,
    query: PageQuery,
    output: Token,
    list: true,
    errors: fail.table,
    run: (ctx, { params, query }) => listTokens(ctx, params.chain, query),
  }),
]

/** Dependencies of these functions: the tenant, and which networks have a node. */
type ChainCtx = Pick<Ctx, 'tenant'> & { readonly chains: Pick<Chains, 'explorerUrl' | 'health' | 'tokenDomainState'> }
type Query = z.output<typeof PageQuery>

/** Returns the chains that the calling key can use, in the order of the enumeration. */
function listChains(ctx: ChainCtx, query: Query): Page<ChainRecord> {
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
function listTokens(ctx: ChainCtx, chain: Chain, query: Query): Page<Token> {
  const network = networkFor(chain, ctx.tenant.environment)
  const shown = network.tokens.map((token): Token => {
    const isWrong = ctx.chains.tokenDomainState(network, token) === 'wrong'
    return isWrong ? { ...token, eip3009: false, eip712: null } : { ...token }
  })
  return pageOfFixed(shown, query)
}

/** Returns a page of a list that never changes; its cursor is a position. */
function pageOfFixed<T>(items: readonly T[], { limit, cursor }: Query): Page<T> {
  const start = Number(openNumberCursor(cursor, 9_999n) ?? 0)
  return pageOf(items.slice(start, start + limit + 1), limit, () => String(start + limit))
}
