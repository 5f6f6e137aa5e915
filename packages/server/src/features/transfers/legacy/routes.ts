import type { Operation } from '../../../platform/operation.ts'
import { approvalErrors } from '../../approvals/index.ts'
import { legacyErrors, policyErrors } from '../../wallets/index.ts'
import { type Deps, operation } from '../ports.ts'
import { transferPlanErrors } from '../routes.ts'
import { LegacyWithdrawal, NewLegacyWithdrawal } from './schema.ts'
import { withdrawLegacy, withdrawnLegacy } from './withdraw.ts'

export const legacyWithdrawOperations: readonly Operation<Deps>[] = [
  operation({
    id: 'wallets.legacy.withdraw',
    needs: { role: 'member', scope: 'money', fresh: true },
    method: 'POST',
    path: '/wallets/withdraw',
    summary: 'Send a coin of the legacy wallet to an address.',
    description: [
      'Responds as soon as the withdrawal is stored; `transfer.completed` or `transfer.failed` reports the outcome, and its transfer can be read.',
      'Send an Idempotency-Key, so that a repeat never sends twice.',
    ].join(' '),
    input: NewLegacyWithdrawal,
    output: LegacyWithdrawal,
    status: 202,
    errors: { ...transferPlanErrors, ...policyErrors, ...approvalErrors, ...legacyErrors },
    // It queries a chain, which no database transaction waits for.
    idempotency: 'intent',
    resume: withdrawnLegacy,
    run: (ctx, { body }) => withdrawLegacy(ctx, body),
  }),
]
