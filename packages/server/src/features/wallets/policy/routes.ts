import type { Operation } from '../../../platform/operation.ts'
import { fail } from '../errors.ts'
import { MasterWalletParams } from '../managed/schema.ts'
import { type Deps, operation } from '../ports.ts'
import { PolicyDocument } from './document.ts'
import { failPolicy } from './errors.ts'
import { getPolicy, tightenPolicy } from './policies.ts'
import { WalletPolicy } from './schema.ts'

const notFound = { 'wallet-not-found': fail.table['wallet-not-found'] }

export const policyRoutes: readonly Operation<Deps>[] = [
  operation({
    id: 'wallets.master.policy.get',
    needs: { role: 'viewer', scope: 'read' },
    method: 'GET',
    path: '/wallet-infra/master-wallets/{id}/policy',
    summary: 'Get what may leave a managed wallet and its children.',
    description: '`policy` is null if none was set; then nothing is limited.',
    params: MasterWalletParams,
    output: WalletPolicy,
    errors: notFound,
    run: (ctx, { params }) => getPolicy(ctx, params.id),
  }),
  operation({
    id: 'wallets.master.policy.set',
    needs: { role: 'admin', scope: 'wallets' },
    method: 'PUT',
    path: '/wallet-infra/master-wallets/{id}/policy',
    summary: 'Set or tighten what may leave a managed wallet and its children.',
    description:
      'An operation or a token that the policy does not name may not leave; an omitted cap is unlimited. Once set, an API key only tightens it; a person with fresh authentication, or the operator, loosens it.',
    params: MasterWalletParams,
    input: PolicyDocument,
    output: WalletPolicy,
    errors: { ...notFound, 'policy-loosening-denied': failPolicy.table['policy-loosening-denied'] },
    run: (ctx, { params, body }) => tightenPolicy(ctx, params.id, body),
  }),
]
