import { chainErrors } from '../../../chain/errors.ts'
import type { Operation } from '../../../platform/operation.ts'
import { failChainName } from '../../chains/index.ts'
import { getByoWallet } from '../byo.ts'
import { getChildAddress } from '../children/children.ts'
import { ChildAddressParams } from '../children/schema.ts'
import { fail as failWallet } from '../errors.ts'
import { getMasterWallet } from '../managed/managed.ts'
import { MasterWalletParams } from '../managed/schema.ts'
import { type Deps, operation } from '../ports.ts'
import { ByoWalletParams } from '../schema.ts'
import { rescanSemaphores } from '../semaphores.ts'
import { fail } from './errors.ts'
import { rescan, rescanned } from './rescan.ts'
import { RescanRequest, RescanResult, TransactionQuery, WalletTransaction } from './schema.ts'
import { pageOfTransactions } from './transactions.ts'

const chainNotAvailable = { 'chain-not-available': failChainName.table['chain-not-available'] }

/** A rescan reads the chain, and may lock a network that everybody's deposits are booked on. */
const rescanCost = 20

const listing = {
  query: TransactionQuery,
  output: WalletTransaction,
  list: true,
  csvName: 'wallet-transactions',
} as const

export const depositOperations: readonly Operation<Deps>[] = [
  operation({
    id: 'wallets.byo.transactions',
    needs: { role: 'viewer', scope: 'read' },
    agent: 'reads',
    method: 'GET',
    path: '/wallet-infra/byo-wallets/{id}/transactions',
    summary: 'List the transactions of a wallet that you own, newest first.',
    description: 'Token transfers to and from its address; those of the native coin are not detected.',
    params: ByoWalletParams,
    ...listing,
    errors: { 'wallet-not-found': failWallet.table['wallet-not-found'], ...chainNotAvailable },
    run: async (ctx, { params, query }) => {
      await getByoWallet(ctx, params.id)
      return pageOfTransactions(ctx, params.id, query)
    },
  }),
  operation({
    id: 'wallets.master.transactions',
    needs: { role: 'viewer', scope: 'read' },
    agent: 'reads',
    method: 'GET',
    path: '/wallet-infra/master-wallets/{id}/transactions',
    summary: 'List the transactions of a managed wallet, newest first.',
    description: 'Token transfers to and from its own address; those of the native coin are not detected.',
    params: MasterWalletParams,
    ...listing,
    errors: { 'wallet-not-found': failWallet.table['wallet-not-found'], ...chainNotAvailable },
    run: async (ctx, { params, query }) => {
      await getMasterWallet(ctx, params.id)
      return pageOfTransactions(ctx, params.id, query)
    },
  }),
  operation({
    id: 'wallets.children.transactions',
    needs: { role: 'viewer', scope: 'read' },
    agent: 'reads',
    method: 'GET',
    path: '/wallet-infra/master-wallets/{id}/child-addresses/{cad}/transactions',
    summary: 'List the transactions of a child address, newest first.',
    description: 'Token transfers to and from its address; those of the native coin are not detected.',
    params: ChildAddressParams,
    ...listing,
    errors: { 'child-address-not-found': failWallet.table['child-address-not-found'], ...chainNotAvailable },
    run: async (ctx, { params, query }) => {
      await getChildAddress(ctx, params)
      return pageOfTransactions(ctx, params.cad, query)
    },
  }),
  operation({
    id: 'wallets.deposits.rescan',
    needs: { role: 'member', scope: 'wallets' },
    method: 'POST',
    path: '/wallet-infra/deposits/rescan',
    summary: 'Rescan one transaction for deposits.',
    description:
      'For a deposit that was not detected. New deposits are recorded, screened and reported as usual; known deposits do not change. Returns at most 500 transactions.',
    input: RescanRequest,
    output: RescanResult,
    idempotency: 'intent',
    resume: rescanned,
    cost: () => rescanCost,
    semaphores: rescanSemaphores,
    errors: { ...fail.table, ...chainNotAvailable, ...chainErrors },
    run: (ctx, { body }) => rescan(ctx, body),
  }),
]
