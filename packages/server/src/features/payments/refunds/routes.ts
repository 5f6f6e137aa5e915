import type { Operation } from '../../../platform/operation.ts'
import { approvalErrors } from '../../approvals/index.ts'
import { transferPlanErrors } from '../../transfers/index.ts'
import { policyErrors } from '../../wallets/index.ts'
import { fail } from '../errors.ts'
import { type Deps, operation } from '../ports.ts'
import { PaymentParams } from '../schema.ts'
import { pageOfRefunds, refundPayment, refundState } from './refund.ts'
import { Refund, RefundQuery, RefundRequest } from './schema.ts'

export const refundOperations: readonly Operation<Deps>[] = [
  operation({
    id: 'payments.refund',
    needs: { role: 'member', scope: 'money', fresh: true },
    method: 'POST',
    path: '/payments/{id}/refund',
    summary: 'Pay a settled payment back to its payer.',
    description:
      'A transfer out of a managed wallet, under its spend policy. Send an Idempotency-Key, so that a repeat never pays twice. Amount: with earlier refunds, at most what was settled. Outcome: the response comes before the transfer is in a block; `payment.refunded` follows once it is final, `transfer.failed` if nothing was paid. 202: it waits for the `approval` that the policy requires. Conflicts (409): `delivery-in-progress` while the response may still be sent; `payment-not-refundable` with Retry-After on main networks until the block of the payment is final. A refunded payment cannot be redeemed.',
    params: PaymentParams,
    input: RefundRequest,
    output: Refund,
    status: 201,
    otherOutputs: { 202: Refund },
    errors: {
      ...transferPlanErrors,
      ...policyErrors,
      ...approvalErrors,
      'payment-not-found': fail.table['payment-not-found'],
      archived: fail.table.archived,
      'payment-not-refundable': fail.table['payment-not-refundable'],
      'delivery-in-progress': fail.table['delivery-in-progress'],
      'refund-exceeds-payment': fail.table['refund-exceeds-payment'],
      'managed-wallet-needed': fail.table['managed-wallet-needed'],
    },
    // It reads a chain, so it must not run inside a transaction.
    idempotency: 'intent',
    resume: (ctx, refundId) => refundState(ctx, refundId),
    run: (ctx, { params, body }) => refundPayment(ctx, params.id, body),
  }),
  operation({
    id: 'payments.refunds.list',
    needs: { role: 'viewer', scope: 'read' },
    agent: 'reads',
    method: 'GET',
    path: '/payments/{id}/refunds',
    summary: 'List the refunds of a payment, newest first.',
    description: 'Includes failed refunds; their amounts can be refunded again.',
    params: PaymentParams,
    query: RefundQuery,
    output: Refund,
    list: true,
    errors: { 'payment-not-found': fail.table['payment-not-found'], archived: fail.table.archived },
    run: (ctx, { params, query }) => pageOfRefunds(ctx, params.id, query),
  }),
]
