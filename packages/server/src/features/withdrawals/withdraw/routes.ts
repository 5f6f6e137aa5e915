import { partnerErrors } from '../../../partners/errors.ts'
import { type Operation, operation } from '../../../platform/operation.ts'
import { PageQuery } from '../../../platform/wire.ts'
import { transferPlanErrors } from '../../transfers/index.ts'
import { policyErrors } from '../../wallets/index.ts'
import { fail } from './errors.ts'
import { NewWithdrawal, Withdrawal, WithdrawalParams } from './schema.ts'
import { createWithdrawal, getWithdrawal, pageOfWithdrawals, withdrawalState } from './withdraw.ts'

const { 'withdrawal-not-found': notFound, ...refusals } = fail.table

export const withdrawalOperations: readonly Operation[] = [
  operation({
    id: 'withdrawals.create',
    agent: 'moves-money',
    method: 'POST',
    path: '/wallet-infra/withdraw',
    summary: 'Pay money of a managed wallet or child address out to a bank account.',
    description: [
      'Answers as soon as the partner was asked; `withdrawal.completed` or `withdrawal.failed` tells the end.',
      'At least 50 dollars. Use an Idempotency-Key: a repeat then never pays twice.',
    ].join(' '),
    input: NewWithdrawal,
    output: Withdrawal,
    status: 201,
    errors: { ...transferPlanErrors, ...policyErrors, ...refusals, ...partnerErrors },
    // It waits for a partner and a chain, which no transaction waits for.
    idempotency: 'intent',
    resume: withdrawalState,
    run: (ctx, { body }) => createWithdrawal(ctx, body),
  }),
  operation({
    id: 'withdrawals.list',
    agent: 'reads',
    method: 'GET',
    path: '/wallet-infra/withdrawals',
    summary: 'List the withdrawals, newest first.',
    query: PageQuery,
    output: Withdrawal,
    list: true,
    run: (ctx, { query }) => pageOfWithdrawals(ctx, query),
  }),
  operation({
    id: 'withdrawals.get',
    agent: 'reads',
    method: 'GET',
    path: '/wallet-infra/withdrawals/{id}',
    summary: 'Get a withdrawal.',
    params: WithdrawalParams,
    output: Withdrawal,
    errors: { 'withdrawal-not-found': notFound },
    run: (ctx, { params }) => getWithdrawal(ctx, params.id),
  }),
]
