import { chainErrors } from '../../../chain/errors.ts'
import { custodyErrors } from '../../../custody/errors.ts'
import type { Operation } from '../../../platform/operation.ts'
import { failChainName } from '../../chains/index.ts'
import { TransactionQuery, WalletTransaction } from '../deposits/schema.ts'
import { fail, failLegacy, legacyErrors } from '../errors.ts'
import { type Deps, operation } from '../ports.ts'
import { masterWalletSemaphores } from '../semaphores.ts'
import {
  balanceOfLegacy,
  getLegacyWallet,
  historyOfLegacy,
  providedLegacyWallet,
  provideLegacyWallet,
} from './create.ts'
import { LegacyBalance, LegacyBalanceQuery, LegacyWallet, NewLegacyWallet } from './schema.ts'

const notFound = { 'wallet-not-found': fail.table['wallet-not-found'] }

export const legacyWalletOperations: readonly Operation<Deps>[] = [
  operation({
    id: 'wallets.legacy.create',
    needs: { role: 'member', scope: 'wallets' },
    method: 'POST',
    path: '/wallets',
    summary: "Create or get the organisation's legacy wallet.",
    description:
      'The first call creates the wallet (201); later calls return it (200), whichever coin they name: all coins share one address.',
    input: NewLegacyWallet,
    output: LegacyWallet,
    status: 201,
    otherOutputs: { 200: LegacyWallet },
    errors: { ...failLegacy.table, ...chainErrors, ...custodyErrors },
    // Custody may call a key service, which no database transaction waits for.
    idempotency: 'intent',
    semaphores: masterWalletSemaphores,
    resume: providedLegacyWallet,
    run: (ctx, { body }) => provideLegacyWallet(ctx, body),
  }),
  operation({
    id: 'wallets.legacy.get',
    needs: { role: 'viewer', scope: 'read' },
    method: 'GET',
    path: '/wallets/me',
    summary: "Get the organisation's legacy wallet, with the coin that it was created for.",
    description: '404 until `wallets.legacy.create` has created it.',
    output: LegacyWallet,
    errors: notFound,
    run: (ctx) => getLegacyWallet(ctx),
  }),
  operation({
    id: 'wallets.legacy.balance',
    needs: { role: 'viewer', scope: 'read' },
    method: 'GET',
    path: '/wallets/balance',
    summary: 'Get the balance of the legacy wallet, by coin.',
    description: 'As of the newest block.',
    query: LegacyBalanceQuery,
    output: LegacyBalance,
    errors: { ...legacyErrors, ...chainErrors },
    run: (ctx, { query }) => balanceOfLegacy(ctx, query),
  }),
  operation({
    id: 'wallets.legacy.history',
    needs: { role: 'viewer', scope: 'read' },
    method: 'GET',
    path: '/wallets/history',
    summary: 'List the transactions of the legacy wallet, newest first.',
    description: 'The token transfers to and from its address.',
    query: TransactionQuery,
    output: WalletTransaction,
    list: true,
    csvName: 'wallet-transactions',
    errors: { ...notFound, 'chain-not-available': failChainName.table['chain-not-available'] },
    run: (ctx, { query }) => historyOfLegacy(ctx, query),
  }),
]
