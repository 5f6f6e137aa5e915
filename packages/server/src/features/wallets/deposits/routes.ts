import { chainErrors } from '../../../chain/errors.ts'
import { type Operation, operation } from '../../../platform/operation.ts'
import { failChainName } from '../../chains/index.ts'
import { getByoWallet } from '../byo.ts'
import { fail as failWallet } from '../errors.ts'
import { ByoWalletParams } from '../schema.ts'
import { fail } from './errors.ts'
import { rescan, rescanned } from './rescan.ts'
import { RescanRequest, RescanResult, TransactionQuery, WalletTransaction } from './schema.ts'
import { pageOfTransactions } from './transactions.ts'

const chainNotAvailable = { 'chain-not-available': failChainName.table['chain-not-available'] }

export const depositOperations: readonly Operation[] = [
  operation({
    id: 'wallets.byo.transactions',
    method: 'GET',
    path: '/wallet-infra/byo-wallets/{id}/transactions',
    summary: 'List what moved at a wallet that you hold, newest first.',
    params: ByoWalletParams,
    query: TransactionQuery,
    output: WalletTransaction,
    list: true,
    errors: { 'wallet-not-found': failWallet.table['wallet-not-found'], ...chainNotAvailable },
    run: async (ctx, { params, query }) => {
      await getByoWallet(ctx, params.id)
      return pageOfTransactions(ctx, params.id, query)
    },
  }),
  operation({
    id: 'wallets.deposits.rescan',
    method: 'POST',
    path: '/wallet-infra/deposits/rescan',
    summary: 'Look for a deposit in one transaction.',
    input: RescanRequest,
    output: RescanResult,
    idempotency: 'intent',
    resume: rescanned,
    errors: { ...fail.table, ...chainNotAvailable, ...chainErrors },
    run: (ctx, { body }) => rescan(ctx, body),
  }),
]
