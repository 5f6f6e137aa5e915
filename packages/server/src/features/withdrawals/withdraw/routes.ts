import { partnerErrors } from '../../../partners/errors.ts'
import type { Operation } from '../../../platform/operation.ts'
import { approvalErrors } from '../../approvals/index.ts'
import { transferPlanErrors } from '../../transfers/index.ts'
import { policyErrors } from '../../wallets/index.ts'
import { type Deps, operation } from '../ports.ts'
import { fail } from './errors.ts'
import { NewWithdrawal, Withdrawal, WithdrawalListQuery, WithdrawalParams } from './schema.ts'
import { createWithdrawal, getWithdrawal, pageOfWithdrawals, withdrawalState } from './withdraw.ts'

const { 'withdrawal-not-found': notFound, ...refusals } = fail.table

export const withdrawalOperations: readonly Operation<Deps>[] = [
  operation({
    id: 'withdrawals.create',
    needs: { role: 'member', scope: 'money', fresh: true },
    agent: 'moves-money',
    method: 'POST',
    path: '/wallet-infra/withdraw',
    summary: 'Pay money from a managed wallet or child address to a bank account.',
    description: [
      'Responds as soon as the partner has received the request; `withdrawal.completed` or `withdrawal.failed` reports the outcome.',
      "202: it waits for the `approval` that the wallet's policy requires. The minimum is 50 USD. Send an Idempotency-Key, so that a repeat never pays twice.",
    ].join(' '),
    input: NewWithdrawal,
    output: Withdrawal,
    status: 201,
    otherOutputs: { 202: Withdrawal },
    errors: { ...transferPlanErrors, ...policyErrors, ...approvalErrors, ...refusals, ...partnerErrors },
    // It waits for a partner and a chain, which no database transaction waits for.
    idempotency: 'intent',
    resume: withdrawalState,
    run: (ctx, { body }) => createWithdrawal(ctx, body),
  }),
  operation({
    id: 'withdrawals.list',
    needs: { role: 'viewer', scope: 'read' },
    agent: 'reads',
    method: 'GET',
    path: '/wallet-infra/withdrawals',
    summary: 'List the withdrawals, newest first.',
    description: 'Filtered by status and time.',
    query: WithdrawalListQuery,
    output: Withdrawal,
    list: true,
    run: (ctx, { query }) => pageOfWithdrawals(ctx, query),
  }),
  operation({
    id: 'withdrawals.get',
    needs: { role: 'viewer', scope: 'read' },
    agent: 'reads',
    method: 'GET',
    path: '/wallet-infra/withdrawals/{id}',
    summary: 'Get a withdrawal.',
    description: 'Shows its present state, what the bank receives and, after a failure, where the tokens are.',
    params: WithdrawalParams,
    output: Withdrawal,
    errors: { 'withdrawal-not-found': notFound },
    run: (ctx, { params }) => getWithdrawal(ctx, params.id),
  }),
]
