import { chainErrors } from '../../../chain/errors.ts'
import type { Operation } from '../../../platform/operation.ts'
import { PageQuery } from '../../../platform/wire.ts'
import { gasErrors } from '../../plans/index.ts'
import { fail as failWallets } from '../errors.ts'
import { MasterWallet, MasterWalletChange, MasterWalletParams } from '../managed/schema.ts'
import { type Deps, operation } from '../ports.ts'
import { fail, failNamed } from './errors.ts'
import { requestSweep } from './request.ts'
import { Sweep, SweepParams, SweepRequest, SweepSummary } from './schema.ts'
import { getSweep, pageOfSweeps, resumeSweep } from './sweeps.ts'
import { changeMasterWallet } from './update.ts'

const walletNotFound = { 'wallet-not-found': failWallets.table['wallet-not-found'] }

export const sweepOperations: readonly Operation<Deps>[] = [
  operation({
    id: 'wallets.master.update',
    settingCost: 1,
    needs: { role: 'member', scope: 'wallets' },
    method: 'PATCH',
    path: '/wallet-infra/master-wallets/{id}',
    summary: 'Change the name, the metadata and the automatic sweep of a managed wallet.',
    description: 'Omitted fields stay as they are.',
    params: MasterWalletParams,
    input: MasterWalletChange,
    output: MasterWallet,
    errors: {
      ...walletNotFound,
      'sweep-not-supported': fail.table['sweep-not-supported'],
      'token-not-supported': failWallets.table['token-not-supported'],
    },
    run: (ctx, { params, body }) => changeMasterWallet(ctx, params.id, body),
  }),
  operation({
    id: 'wallets.master.sweep',
    needs: { role: 'member', scope: 'wallets' },
    method: 'POST',
    path: '/wallet-infra/master-wallets/{id}/sweep',
    summary: 'Move the balances of a token from the child addresses to their master wallet.',
    description:
      'The children sign and the operator pays the gas. A child whose token is already being swept is skipped. The response describes the new sweep; read the sweep to see its progress.',
    params: MasterWalletParams,
    input: SweepRequest,
    output: Sweep,
    status: 202,
    errors: {
      ...walletNotFound,
      'wallet-retired': failWallets.table['wallet-retired'],
      ...failNamed.table,
      'sweep-not-supported': fail.table['sweep-not-supported'],
      'token-not-supported': failWallets.table['token-not-supported'],
      ...gasErrors,
      ...chainErrors,
    },
    idempotency: 'intent',
    // It reads the balance of each child, and signs for those that have any.
    cost: ({ childAddressIds }) => 10 + Math.ceil((childAddressIds?.length ?? 500) / 50),
    resume: resumeSweep,
    run: (ctx, { params, body }) => requestSweep(ctx, params.id, body),
  }),
  operation({
    id: 'wallets.sweeps.list',
    needs: { role: 'viewer', scope: 'read' },
    method: 'GET',
    path: '/wallet-infra/master-wallets/{id}/sweeps',
    summary: 'List the sweeps of a managed wallet, newest first.',
    description: 'Those of requests and automatic ones, with their totals.',
    params: MasterWalletParams,
    query: PageQuery,
    output: SweepSummary,
    list: true,
    errors: walletNotFound,
    run: (ctx, { params, query }) => pageOfSweeps(ctx, params.id, query),
  }),
  operation({
    id: 'wallets.sweeps.get',
    needs: { role: 'viewer', scope: 'read' },
    method: 'GET',
    path: '/wallet-infra/master-wallets/{id}/sweeps/{sweepId}',
    summary: 'Get one sweep, with the amount and state of each child.',
    description: 'A later sweep takes the money of a failed child, if it is still there (see `reason`).',
    params: SweepParams,
    output: Sweep,
    errors: { 'sweep-not-found': fail.table['sweep-not-found'] },
    run: (ctx, { params }) => getSweep(ctx, params),
  }),
]
