import { z } from 'zod'
import { chainErrors } from '../../../chain/errors.ts'
import type { Operation } from '../../../platform/operation.ts'
import { ChildAddressParams } from '../children/schema.ts'
import { fail } from '../errors.ts'
import { MasterWalletParams } from '../managed/schema.ts'
import { type Deps, operation } from '../ports.ts'
import { ByoWalletParams } from '../schema.ts'
import { Balance, BalanceQuery, balancesOfByo, balancesOfChild, balancesOfMaster } from './balances.ts'

const description = 'The native coin, if the chain has one, and the tokens of the wallet, in the newest block.'
const output = z.array(Balance)
const walletErrors = { 'wallet-not-found': fail.table['wallet-not-found'], ...chainErrors }

export const balanceOperations: readonly Operation<Deps>[] = [
  operation({
    id: 'wallets.master.balances',
    needs: { role: 'viewer', scope: 'read' },
    agent: 'reads',
    method: 'GET',
    path: '/wallet-infra/master-wallets/{id}/balances',
    summary: 'Get the balances of a managed wallet.',
    description,
    params: MasterWalletParams,
    query: BalanceQuery,
    output,
    errors: walletErrors,
    run: (ctx, { params, query }) => balancesOfMaster(ctx, params.id, query),
  }),
  operation({
    id: 'wallets.children.balances',
    needs: { role: 'viewer', scope: 'read' },
    agent: 'reads',
    method: 'GET',
    path: '/wallet-infra/master-wallets/{id}/child-addresses/{cad}/balances',
    summary: 'Get the balances of a child address.',
    description,
    params: ChildAddressParams,
    query: BalanceQuery,
    output,
    errors: { 'child-address-not-found': fail.table['child-address-not-found'], ...chainErrors },
    run: (ctx, { params, query }) => balancesOfChild(ctx, params, query),
  }),
  operation({
    id: 'wallets.byo.balances',
    needs: { role: 'viewer', scope: 'read' },
    agent: 'reads',
    method: 'GET',
    path: '/wallet-infra/byo-wallets/{id}/balances',
    summary: 'Get the balances of a wallet of your own.',
    description,
    params: ByoWalletParams,
    output,
    errors: walletErrors,
    run: (ctx, { params }) => balancesOfByo(ctx, params.id),
  }),
]
