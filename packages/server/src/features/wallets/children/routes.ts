import { z } from 'zod'
import type { Operation } from '../../../platform/operation.ts'
import { PageQuery } from '../../../platform/wire.ts'
import { planErrors } from '../../plans/index.ts'
import { fail } from '../errors.ts'
import { MasterWalletParams } from '../managed/schema.ts'
import { type Deps, operation } from '../ports.ts'
import { WalletChange } from '../schema.ts'
import { childAddressSemaphores } from '../semaphores.ts'
import {
  changeChildAddress,
  childrenAt,
  childrenResourceKey,
  createChildAddresses,
  getChildAddress,
  pageOfChildAddresses,
} from './children.ts'
import { ChildAddress, ChildAddressParams, NewChildAddresses } from './schema.ts'

const walletNotFound = { 'wallet-not-found': fail.table['wallet-not-found'] }

export const childAddressOperations: readonly Operation<Deps>[] = [
  operation({
    id: 'wallets.children.create',
    needs: { role: 'member', scope: 'wallets' },
    agent: 'adds',
    method: 'POST',
    path: '/wallet-infra/master-wallets/{id}/child-addresses',
    summary: 'Derive the next child address of a managed wallet, or several.',
    description: 'With `count` it returns an array, in the order of the indices.',
    params: MasterWalletParams,
    input: NewChildAddresses,
    output: z.union([ChildAddress, z.array(ChildAddress)]),
    status: 201,
    errors: {
      ...walletNotFound,
      'child-addresses-exhausted': fail.table['child-addresses-exhausted'],
      'wallet-retired': fail.table['wallet-retired'],
      'child-address-limit-reached': planErrors['child-address-limit-reached'],
    },
    semaphores: childAddressSemaphores,
    // Each address has a copy of the metadata.
    cost: ({ count = 1, metadata = {} }) =>
      Math.ceil(count / 8) + Math.floor((count * JSON.stringify(metadata).length) / 65_536),
    resourceOf: childrenResourceKey,
    resume: childrenAt,
    run: (ctx, { params, body }) => createChildAddresses(ctx, params.id, body),
  }),
  operation({
    id: 'wallets.children.list',
    needs: { role: 'viewer', scope: 'read' },
    agent: 'reads',
    method: 'GET',
    path: '/wallet-infra/master-wallets/{id}/child-addresses',
    summary: 'List the child addresses of a managed wallet, newest first.',
    description: 'Their balances are read with `wallets.children.balances`.',
    params: MasterWalletParams,
    query: PageQuery,
    output: ChildAddress,
    list: true,
    errors: walletNotFound,
    run: (ctx, { params, query }) => pageOfChildAddresses(ctx, params.id, query),
  }),
  operation({
    id: 'wallets.children.get',
    needs: { role: 'viewer', scope: 'read' },
    agent: 'reads',
    method: 'GET',
    path: '/wallet-infra/master-wallets/{id}/child-addresses/{cad}',
    summary: 'Get one child address.',
    description: 'Its balances are read with `wallets.children.balances`.',
    params: ChildAddressParams,
    output: ChildAddress,
    errors: { 'child-address-not-found': fail.table['child-address-not-found'] },
    run: (ctx, { params }) => getChildAddress(ctx, params),
  }),
  operation({
    id: 'wallets.children.update',
    settingCost: 0.1,
    needs: { role: 'member', scope: 'wallets' },
    method: 'PATCH',
    path: '/wallet-infra/master-wallets/{id}/child-addresses/{cad}',
    summary: 'Change the name and metadata of a child address.',
    description: 'Omitted fields stay as they are.',
    params: ChildAddressParams,
    input: WalletChange,
    output: ChildAddress,
    errors: { 'child-address-not-found': fail.table['child-address-not-found'] },
    run: (ctx, { params, body }) => changeChildAddress(ctx, params, body),
  }),
]
