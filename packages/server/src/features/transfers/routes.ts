import { chainErrors } from '../../chain/errors.ts'
import { failPlatform } from '../../platform/errors.ts'
import { type Operation, operation } from '../../platform/operation.ts'
import { failChainName } from '../chains/index.ts'
import { policyErrors } from '../wallets/index.ts'
import { fail } from './errors.ts'
import { quoteTransfer } from './quotes.ts'
import { NewTransfer, NewTransferQuote, Transfer, TransferListQuery, TransferParams, TransferQuote } from './schema.ts'
import { createTransfer, getTransfer, pageOfTransfers, transferState } from './transfer.ts'

const { 'transfer-not-found': notFound, ...refusals } = fail.table
/** What planning a transfer may refuse; for whoever else plans one. */
export const transferPlanErrors = {
  ...refusals,
  ...chainErrors,
  'chain-not-available': failChainName.table['chain-not-available'],
  'address-format-invalid': failPlatform.table['address-format-invalid'],
}

export const transferOperations: readonly Operation[] = [
  operation({
    id: 'transfers.create',
    agent: 'moves-money',
    method: 'POST',
    path: '/wallet-infra/transfer',
    summary: 'Send money from a managed wallet or child address.',
    description: [
      'Waits for a block for up to 30 seconds: `confirmed`, or `pending` when none came, and `transfer.completed` or `transfer.failed` follows.',
      'A child that cannot pay for gas signs for the service to send (USDC), or is sent gas by its master first. Use an Idempotency-Key: a repeat then never sends twice.',
    ].join(' '),
    input: NewTransfer,
    output: Transfer,
    status: 201,
    errors: { ...transferPlanErrors, ...policyErrors },
    // It waits for a chain, which no transaction waits for.
    idempotency: 'intent',
    resume: transferState,
    run: (ctx, { body }) => createTransfer(ctx, body),
  }),
  operation({
    id: 'transfers.quote',
    agent: 'reads',
    method: 'POST',
    path: '/wallet-infra/transfer/quote',
    summary: 'Say what a transfer would cost, how it would go and what would arrive at least; nothing moves.',
    description: 'A transfer that names the `quoteId` within 60 seconds brings at least `minToAmount`, or is refused.',
    input: NewTransferQuote,
    output: TransferQuote,
    errors: transferPlanErrors,
    // It asks a chain, which no transaction waits for; a repeat makes another quote, so nothing is tied to a key.
    idempotency: 'intent',
    run: (ctx, { body }) => quoteTransfer(ctx, body),
  }),
  operation({
    id: 'transfers.list',
    agent: 'reads',
    method: 'GET',
    path: '/wallet-infra/transfers',
    summary: 'List the transfers, newest first.',
    query: TransferListQuery,
    output: Transfer,
    list: true,
    run: (ctx, { query }) => pageOfTransfers(ctx, query),
  }),
  operation({
    id: 'transfers.get',
    agent: 'reads',
    method: 'GET',
    path: '/wallet-infra/transfers/{id}',
    summary: 'Get a transfer.',
    params: TransferParams,
    output: Transfer,
    errors: { 'transfer-not-found': notFound },
    run: (ctx, { params }) => getTransfer(ctx, params.id),
  }),
]
