import { chainErrors } from '../../../chain/errors.ts'
import { custodyErrors } from '../../../custody/errors.ts'
import { id } from '../../../platform/ids.ts'
import type { Operation } from '../../../platform/operation.ts'
import { failChainName } from '../../chains/index.ts'
import { planErrors } from '../../plans/index.ts'
import { fail } from '../errors.ts'
import { type Deps, operation } from '../ports.ts'
import { masterWalletSemaphores } from '../semaphores.ts'
import { createMasterWallet } from './create.ts'
import { getMasterWallet, pageOfMasterWallets } from './managed.ts'
import { restoreMasterWallet, retireMasterWallet } from './retire.ts'
import { MasterWallet, MasterWalletListQuery, MasterWalletParams, NewMasterWallet } from './schema.ts'

export const masterWalletOperations: readonly Operation<Deps>[] = [
  operation({
    id: 'wallets.master.create',
    settingCost: 5,
    needs: { role: 'member', scope: 'wallets' },
    method: 'POST',
    path: '/wallet-infra/master-wallets',
    summary: 'Create a wallet whose key the service holds.',
    description:
      'Derives the next address of the organisation and moves no money. Counts towards the managed wallets of the plan. Next, send money to its address or derive child addresses.',
    input: NewMasterWallet,
    output: MasterWallet,
    status: 201,
    errors: {
      'token-not-supported': fail.table['token-not-supported'],
      'chain-not-available': failChainName.table['chain-not-available'],
      'chain-not-configured': chainErrors['chain-not-configured'],
      'managed-wallet-limit-reached': planErrors['managed-wallet-limit-reached'],
      ...custodyErrors,
    },
    // Custody may call a key service, which no database transaction waits for.
    idempotency: 'intent',
    semaphores: masterWalletSemaphores,
    resume: (ctx, walletId) => getMasterWallet(ctx, id('mwt').parse(walletId)),
    run: (ctx, { body }) => createMasterWallet(ctx, body),
  }),
  operation({
    id: 'wallets.master.list',
    needs: { role: 'viewer', scope: 'read' },
    agent: 'reads',
    method: 'GET',
    path: '/wallet-infra/master-wallets',
    summary: 'List the managed wallets, newest first.',
    description: 'Retired ones too, with `provisionStatus` `retired`.',
    query: MasterWalletListQuery,
    output: MasterWallet,
    list: true,
    run: (ctx, { query }) => pageOfMasterWallets(ctx, query),
  }),
  operation({
    id: 'wallets.master.get',
    needs: { role: 'viewer', scope: 'read' },
    agent: 'reads',
    method: 'GET',
    path: '/wallet-infra/master-wallets/{id}',
    summary: 'Get one managed wallet.',
    description: 'Its balances are read with `wallets.master.balances`.',
    params: MasterWalletParams,
    output: MasterWallet,
    errors: { 'wallet-not-found': fail.table['wallet-not-found'] },
    run: (ctx, { params }) => getMasterWallet(ctx, params.id),
  }),
  operation({
    id: 'wallets.master.retire',
    settingCost: 20,
    needs: { role: 'member', scope: 'wallets' },
    method: 'DELETE',
    path: '/wallet-infra/master-wallets/{id}',
    summary: 'Retire a managed wallet without a balance or open transfers.',
    description: [
      'Until it is restored it takes no payment, sends nothing, derives no child and does not count towards the plan. Deposits to its',
      'addresses are still detected. Coin that costs more to move than its value, and a token of which all is frozen, are ignored.',
    ].join(' '),
    params: MasterWalletParams,
    errors: {
      'wallet-not-found': fail.table['wallet-not-found'],
      'wallet-not-empty': fail.table['wallet-not-empty'],
      ...chainErrors,
    },
    run: (ctx, { params }) => retireMasterWallet(ctx, params.id),
  }),
  operation({
    id: 'wallets.master.restore',
    settingCost: 1,
    needs: { role: 'member', scope: 'wallets' },
    method: 'POST',
    path: '/wallet-infra/master-wallets/{id}/restore',
    summary: 'Restore a retired wallet.',
    description: 'It can be used again and counts towards the plan. Restoring an active wallet changes nothing.',
    params: MasterWalletParams,
    output: MasterWallet,
    errors: {
      'wallet-not-found': fail.table['wallet-not-found'],
      'managed-wallet-limit-reached': planErrors['managed-wallet-limit-reached'],
    },
    run: (ctx, { params }) => restoreMasterWallet(ctx, params.id),
  }),
]
