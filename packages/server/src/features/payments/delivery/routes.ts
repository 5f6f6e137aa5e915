import { custodyErrors } from '../../../custody/errors.ts'
import type { Operation } from '../../../platform/operation.ts'
import { fail } from '../errors.ts'
import { type Deps, operation } from '../ports.ts'
import { Payment, PaymentParams } from '../schema.ts'
import { finishRedemption, redeemedBefore, redeemPayment, reportDelivered, takeBackRedemption } from './redeem.ts'
import { Delivered, DeliveredRequest, RedeemedRequest, RedeemRequest, Redemption } from './schema.ts'

export const deliveryOperations: readonly Operation<Deps>[] = [
  operation({
    id: 'payments.delivered',
    needs: { role: 'member', scope: 'payments' },
    whileSuspended: true,
    method: 'POST',
    path: '/payments/delivered',
    summary: 'Report that the responses of payments were sent to their payers.',
    description:
      'For payments that were verified with reportsDelivery. A payment that is settled and not delivered can be redeemed.',
    input: DeliveredRequest,
    output: Delivered,
    run: (ctx, { body }) => reportDelivered(ctx, body.paymentIds),
  }),
  operation({
    id: 'payments.redeem',
    needs: { role: 'member', scope: 'payments' },
    whileSuspended: true,
    method: 'POST',
    path: '/payments/redeem',
    summary: 'Request the right to serve a payment that was settled and never delivered.',
    description:
      'The payer repeats the request with the same credential. One caller at a time may serve it; the first request starts a grace period of 30 seconds for the handler that ran first. The credential must show what the chain does not: an MPP challenge, the challengeId of an x402 version 2 offer, a payment-identifier, or a fresh signature of the payer. Payments of x402 version 1 cannot be redeemed. A payment that may still be served is delivery-in-progress.',
    input: RedeemRequest,
    output: Redemption,
    errors: {
      'payment-not-redeemable': fail.table['payment-not-redeemable'],
      'delivery-in-progress': fail.table['delivery-in-progress'],
      'answer-lost': fail.table['answer-lost'],
      ...custodyErrors,
    },
    idempotency: 'intent',
    secretResponse: true,
    resume: (ctx, granted) => redeemedBefore(ctx, granted),
    run: (ctx, { body }) => redeemPayment(ctx, body),
  }),
  operation({
    id: 'payments.redeemed',
    needs: { role: 'member', scope: 'payments' },
    whileSuspended: true,
    method: 'POST',
    path: '/payments/{id}/redeemed',
    summary: 'Finish a redemption, right before you send the response.',
    description: 'If it is refused, another caller may serve the payment and you must not send the response.',
    params: PaymentParams,
    input: RedeemedRequest,
    output: Payment,
    errors: {
      'payment-not-found': fail.table['payment-not-found'],
      archived: fail.table.archived,
      'redemption-lost': fail.table['redemption-lost'],
    },
    run: (ctx, { params, body }) => finishRedemption(ctx, params.id, body.redemptionToken),
  }),
  operation({
    id: 'payments.undelivered',
    needs: { role: 'member', scope: 'payments' },
    whileSuspended: true,
    method: 'POST',
    path: '/payments/{id}/undelivered',
    summary: 'Undo the end of a redemption whose response was not sent.',
    description:
      'For a payer whose connection broke after payments.redeemed. A process that has the response or may run the handler again can redeem the payment at once.',
    params: PaymentParams,
    input: RedeemedRequest,
    output: Payment,
    errors: {
      'payment-not-found': fail.table['payment-not-found'],
      archived: fail.table.archived,
      'redemption-lost': fail.table['redemption-lost'],
    },
    run: (ctx, { params, body }) => takeBackRedemption(ctx, params.id, body.redemptionToken),
  }),
]
