import { chainErrors } from '../../chain/errors.ts'
import { failPlatform } from '../../platform/errors.ts'
import type { Operation } from '../../platform/operation.ts'
import { approvalErrors } from '../approvals/index.ts'
import { failChainName } from '../chains/index.ts'
import { policyErrors } from '../wallets/index.ts'
import { fail } from './errors.ts'
import { type Deps, operation } from './ports.ts'
import { quoteTransfer } from './quotes.ts'
import { NewTransfer, NewTransferQuote, Transfer, TransferListQuery, TransferParams, TransferQuote } from './schema.ts'
import { createTransfer, getTransfer, pageOfTransfers, transferState } from './transfer.ts'

const { 'transfer-not-found': notFound, ...refusals } = fail.table
/** Errors of planning a transfer; shared with other operations that plan one. */
export const transferPlanErrors = {
  ...refusals,
  ...chainErrors,
  'chain-not-available': failChainName.table['chain-not-available'],
  'address-format-invalid': failPlatform.table['address-format-invalid'],
}

/** Partners are queried for offers on another chain or in another token. */
function rateCostOf({ fromChain, toChain, fromToken, toToken }: NewTransferQuote): number {
  const isDirect = fromToken === toToken && (fromChain === undefined || fromChain === toChain)
  return isDirect ? 2 : 20
}

export const transferOperations: readonly Operation<Deps>[] = [
  operation({
    id: 'transfers.create',
    needs: { role: 'member', scope: 'money', fresh: true },
    agent: 'moves-money',
    method: 'POST',
    path: '/wallet-infra/transfer',
    summary: 'Send money from a managed wallet or child address.',
    description: [
      "Waits up to 20 seconds for a block: returns `confirmed`, or `pending` if none came; `transfer.completed` or `transfer.failed` then reports the outcome. 202: it waits for the `approval` that the wallet's policy requires.",
      'A child that cannot pay for gas signs for the service to send (USDC), or gets gas from its master first. Send an Idempotency-Key, so that a repeat never sends twice.',
    ].join(' '),
    input: NewTransfer,
    output: Transfer,
    status: 201,
    otherOutputs: { 202: Transfer },
    errors: { ...transferPlanErrors, ...policyErrors, ...approvalErrors },
    // It waits for a chain, which no database transaction waits for.
    idempotency: 'intent',
    resume: transferState,
    cost: rateCostOf,
    run: (ctx, { body }) => createTransfer(ctx, body),
  }),
  operation({
    id: 'transfers.quote',
    needs: { role: 'member', scope: 'money' },
    agent: 'reads',
    method: 'POST',
    path: '/wallet-infra/transfer/quote',
    summary: 'Quote the cost, the route and the least amount that would arrive; nothing moves.',
    description: 'A transfer with this `quoteId` within 60 seconds delivers at least `minToAmount`, or is refused.',
    input: NewTransferQuote,
    output: TransferQuote,
    errors: transferPlanErrors,
    // It queries a chain, which no database transaction waits for; a repeat makes another quote, so none is stored for a key.
    idempotency: 'intent',
    cost: rateCostOf,
    run: (ctx, { body }) => quoteTransfer(ctx, body),
  }),
  operation({
    id: 'transfers.list',
    needs: { role: 'viewer', scope: 'read' },
    agent: 'reads',
    method: 'GET',
    path: '/wallet-infra/transfers',
    summary: 'List the transfers, newest first.',
    description: 'Filtered by wallet, status and time.',
    query: TransferListQuery,
    output: Transfer,
    list: true,
    csvName: 'transfers',
    run: (ctx, { query }) => pageOfTransfers(ctx, query),
  }),
  operation({
    id: 'transfers.get',
    needs: { role: 'viewer', scope: 'read' },
    agent: 'reads',
    method: 'GET',
    path: '/wallet-infra/transfers/{id}',
    summary: 'Get a transfer.',
    description: 'Shows its present state: `pending`, `confirmed` or `failed`.',
    params: TransferParams,
    output: Transfer,
    errors: { 'transfer-not-found': notFound },
    run: (ctx, { params }) => getTransfer(ctx, params.id),
  }),
]
