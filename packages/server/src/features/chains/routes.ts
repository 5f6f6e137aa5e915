import type { Operation } from '../../platform/operation.ts'
import { PageQuery } from '../../platform/wire.ts'
import { listChains, listTokens } from './chains.ts'
import { fail } from './errors.ts'
import { type Deps, operation } from './ports.ts'
import { ChainParams, ChainRecord, Token } from './schema.ts'

export const chainOperations: readonly Operation<Deps>[] = [
  operation({
    id: 'chains.list',
    needs: { role: 'viewer', scope: 'read' },
    agent: 'reads',
    method: 'GET',
    path: '/wallet-infra/chains',
    summary: 'List the chains that the calling key can use.',
    description:
      '`configured` shows whether this deployment has a node for it; without one, what needs the chain is 503.',
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
