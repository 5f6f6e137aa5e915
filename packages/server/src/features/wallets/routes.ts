import { chainErrors } from '../../chain/errors.ts'
import { failPlatform } from '../../platform/errors.ts'
import { id } from '../../platform/ids.ts'
import type { Operation } from '../../platform/operation.ts'
import { PageQuery } from '../../platform/wire.ts'
import { failChainName } from '../chains/index.ts'
import { planErrors } from '../plans/index.ts'
import { balanceOperations } from './balances/routes.ts'
import { changeByoWallet, deleteByoWallet, getByoWallet, pageOfByoWallets, registerByoWallet } from './byo.ts'
import { childAddressOperations } from './children/routes.ts'
import { fail } from './errors.ts'
import { legacyWalletOperations } from './legacy/routes.ts'
import { masterWalletOperations } from './managed/routes.ts'
import { policyRoutes } from './policy/routes.ts'
import { type Deps, operation } from './ports.ts'
import { ByoWallet, ByoWalletParams, NewByoWallet, WalletChange } from './schema.ts'
import { holdOperations } from './screening/hold-summary.ts'
import { sweepOperations } from './sweep/routes.ts'

const notFound = { 'wallet-not-found': fail.table['wallet-not-found'] }

export const walletOperations: readonly Operation<Deps>[] = [
  operation({
    id: 'wallets.byo.create',
    settingCost: 2,
    needs: { role: 'member', scope: 'wallets' },
    method: 'POST',
    path: '/wallet-infra/byo-wallets',
    summary: 'Register a wallet that you own.',
    description:
      'The service detects deposits at its address, and never has its key. The address is screened at once; a flagged wallet cannot be paid. Counts towards the wallets of the plan.',
    input: NewByoWallet,
    output: ByoWallet,
    status: 201,
    errors: {
      'wallet-already-registered': fail.table['wallet-already-registered'],
      'token-not-supported': fail.table['token-not-supported'],
      'address-format-invalid': failPlatform.table['address-format-invalid'],
      'chain-not-available': failChainName.table['chain-not-available'],
      'chain-not-configured': chainErrors['chain-not-configured'],
      'byo-wallet-limit-reached': planErrors['byo-wallet-limit-reached'],
    },
    // A node is queried whether the address is a token, which no database transaction waits for.
    idempotency: 'intent',
    resume: (ctx, walletId) => getByoWallet(ctx, id('byw').parse(walletId)),
    run: (ctx, { body }) => registerByoWallet(ctx, body),
  }),
  operation({
    id: 'wallets.byo.list',
    needs: { role: 'viewer', scope: 'read' },
    agent: 'reads',
    method: 'GET',
    path: '/wallet-infra/byo-wallets',
    summary: 'List the wallets that you own, newest first.',
    description: 'Wallets that you deleted are left out.',
    query: PageQuery,
    output: ByoWallet,
    list: true,
    run: (ctx, { query }) => pageOfByoWallets(ctx, query),
  }),
  operation({
    id: 'wallets.byo.get',
    needs: { role: 'viewer', scope: 'read' },
    method: 'GET',
    path: '/wallet-infra/byo-wallets/{id}',
    summary: 'Get one wallet that you own.',
    description: '`isActive` shows whether it can be paid.',
    params: ByoWalletParams,
    output: ByoWallet,
    errors: notFound,
    run: (ctx, { params }) => getByoWallet(ctx, params.id),
  }),
  operation({
    id: 'wallets.byo.update',
    settingCost: 1,
    needs: { role: 'member', scope: 'wallets' },
    method: 'PATCH',
    path: '/wallet-infra/byo-wallets/{id}',
    summary: 'Change the name and metadata of a wallet that you own.',
    description: 'Omitted fields stay as they are. Address and chain never change: register another wallet.',
    params: ByoWalletParams,
    input: WalletChange,
    output: ByoWallet,
    errors: notFound,
    run: (ctx, { params, body }) => changeByoWallet(ctx, params.id, body),
  }),
  operation({
    id: 'wallets.byo.delete',
    needs: { role: 'member', scope: 'wallets' },
    method: 'DELETE',
    path: '/wallet-infra/byo-wallets/{id}',
    summary: 'Stop watching a wallet that you own.',
    description:
      'Its deposits are no longer detected, and it no longer counts towards the plan. Money at the address is not touched.',
    params: ByoWalletParams,
    errors: notFound,
    run: (ctx, { params }) => deleteByoWallet(ctx, params.id),
  }),
  ...masterWalletOperations,
  ...childAddressOperations,
  ...balanceOperations,
  ...holdOperations,
  ...sweepOperations,
  ...policyRoutes,
  ...legacyWalletOperations,
]
