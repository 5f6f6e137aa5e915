import { type Operation, operation } from '../../../platform/operation.ts'
import { legacyErrors, policyErrors } from '../../wallets/index.ts'
import { transferPlanErrors } from '../routes.ts'
import { LegacyWithdrawal, NewLegacyWithdrawal } from './schema.ts'
import { withdrawLegacy, withdrawnLegacy } from './withdraw.ts'

export const legacyWithdrawOperations: readonly Operation[] = [
  operation({
    id: 'wallets.legacy.withdraw',
    method: 'POST',
    path: '/wallets/withdraw',
    summary: 'Send a coin of the legacy wallet to an address.',
    description: [
      'Answers as soon as the withdrawal is stored; `transfer.completed` or `transfer.failed` tells the end, and its transfer can be read.',
      'Use an Idempotency-Key: a repeat then never sends twice.',
    ].join(' '),
    input: NewLegacyWithdrawal,
    output: LegacyWithdrawal,
    status: 202,
    errors: { ...transferPlanErrors, ...policyErrors, ...legacyErrors },
    // It asks a chain, which no transaction waits for.
    idempotency: 'intent',
    resume: withdrawnLegacy,
    run: (ctx, { body }) => withdrawLegacy(ctx, body),
  }),
]
