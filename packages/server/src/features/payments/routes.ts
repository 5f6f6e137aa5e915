import { z } from 'zod'
import { chainErrors } from '../../chain/errors.ts'
import { custodyErrors } from '../../custody/errors.ts'
import type { Operation } from '../../platform/operation.ts'
import { planErrors } from '../plans/index.ts'
import { walletErrors } from '../wallets/index.ts'
import { challenge } from './challenge.ts'
import { deliveryOperations } from './delivery/routes.ts'
import { fail, failBody } from './errors.ts'
import { getPayment, getPaymentLog, listPaymentLogs, summarizeLogs } from './logs.ts'
import { type Deps, operation } from './ports.ts'
import { verifiedResponse } from './record.ts'
import { refundOperations } from './refunds/routes.ts'
import { releasePayment } from './release.ts'
import * as schema from './schema.ts'
import { settlementState, settlePayment } from './settle.ts'
import { statisticsOperation } from './statistics/statistics.ts'
import { verifyPayment } from './verify.ts'

const { 'payment-not-found': paymentNotFound, 'payment-log-not-found': logNotFound, archived } = fail.table

const challengeOperation = operation({
  id: 'payments.challenge',
  needs: { role: 'member', scope: 'payments' },
  agent: 'adds',
  method: 'POST',
  path: '/payments/challenge',
  summary: 'Create the challenge for an unpaid request.',
  description: 'With `count` it returns an array of challenges, so that a middleware can fetch ahead.',
  input: schema.ChallengeRequest,
  output: z.union([schema.Challenge, z.array(schema.Challenge), schema.CompactChallenges]),
  errors: {
    ...walletErrors,
    ...chainErrors,
    ...custodyErrors,
    'chain-not-supported': fail.table['chain-not-supported'],
    ...amountErrors(),
  },
  // Nothing is written, and wallets are read for many requests at once: inside a transaction each would wait for a second
  // connection.
  idempotency: 'intent',
  cost: ({ count = 1 }) => Math.ceil(count / 8),
  changesNothing: true,
  run: (ctx, { body }) => challenge(ctx, body),
})

/** Errors of `verifyPayment` itself. */
export const verifyingErrors = {
  ...amountErrors(),
  'payment-limit-reached': planErrors['payment-limit-reached'],
  'payment-verification-failed': fail.table['payment-verification-failed'],
  'duplicate-payment': fail.table['duplicate-payment'],
  'payment-identifier-conflict': fail.table['payment-identifier-conflict'],
  'chain-not-supported': fail.table['chain-not-supported'],
  'settlement-budget-exceeded': fail.table['settlement-budget-exceeded'],
  'too-many-open-payments': fail.table['too-many-open-payments'],
}

const verifyOperation = operation({
  id: 'payments.verify',
  needs: { role: 'member', scope: 'payments' },
  method: 'POST',
  path: '/payments/verify',
  summary: 'Verify a payment credential and record the payment, once.',
  description:
    'A credential pays once: a used one is 409, and a bad one is 402 with the code of its protocol in `reason`. Counts towards the payments of the month. If `settlementPending` is true, call `payments.settle` next.',
  input: schema.VerifyRequest,
  output: schema.VerifiedPayment,
  errors: {
    ...walletErrors,
    ...chainErrors,
    ...custodyErrors,
    ...verifyingErrors,
  },
  idempotency: 'intent',
  resume: (ctx, paymentId) => verifiedResponse(ctx, paymentId),
  run: (ctx, { body }) => verifyPayment(ctx, body),
})

const settleOperation = operation({
  id: 'payments.settle',
  needs: { role: 'member', scope: 'payments' },
  whileSuspended: true,
  method: 'POST',
  path: '/payments/settle',
  summary: 'Settle a verified payment on chain, and wait for the outcome.',
  description:
    'Waits some seconds, and returns 202 if the outcome is not known yet. With `Prefer: respond-async` it does not wait.',
  input: schema.SettleRequest,
  output: schema.Settlement,
  otherOutputs: { 202: schema.Settling },
  errors: {
    'payment-not-found': failBody.table['payment-not-found'],
    archived,
    'settlement-token-invalid': failBody.table['settlement-token-invalid'],
    'settlement-failed': fail.table['settlement-failed'],
    'payment-voided': fail.table['payment-voided'],
    ...custodyErrors,
  },
  idempotency: 'intent',
  isRepeatable: true,
  resume: (ctx, paymentId) => settlementState(ctx, paymentId),
  run: (ctx, { body, headers }) =>
    settlePayment(ctx, body, { waitMs: /\brespond-async\b/.test(headers.prefer ?? '') ? 0 : ctx.settleWaitMs }),
})

const releaseOperation = operation({
  id: 'payments.release',
  needs: { role: 'member', scope: 'payments' },
  whileSuspended: true,
  method: 'POST',
  path: '/payments/{id}/release',
  summary: 'Void a verified payment that you will not settle.',
  description:
    'Call it if the handler refuses or fails: it no longer counts in the month, and its gas is released. A released payment stays released if you repeat the call. A payment whose settlement was requested is 409.',
  params: schema.PaymentParams,
  input: schema.ReleaseRequest,
  output: schema.Payment,
  errors: {
    'payment-not-found': paymentNotFound,
    archived,
    'settlement-token-invalid': failBody.table['settlement-token-invalid'],
    'payment-in-settlement': fail.table['payment-in-settlement'],
    ...custodyErrors,
  },
  run: (ctx, { params, body }) => releasePayment(ctx, params.id, body),
})

const getOperation = operation({
  id: 'payments.get',
  needs: { role: 'viewer', scope: 'read' },
  agent: 'reads',
  method: 'GET',
  path: '/payments/{id}',
  summary: 'Get one payment.',
  description: 'Shows whether the money has moved, and how much of it was refunded.',
  params: schema.PaymentParams,
  output: schema.Payment,
  errors: { 'payment-not-found': paymentNotFound, archived },
  run: (ctx, { params }) => getPayment(ctx, params.id),
})

function listLogsAt(id: string, path: string): Operation<Deps> {
  return operation({
    id: `${id}.list`,
    needs: { role: 'viewer', scope: 'read' },
    method: 'GET',
    path,
    summary: 'List payment logs, newest first.',
    description: 'One record for each payment, with its route and the API key that verified it.',
    query: schema.LogQuery,
    output: schema.PaymentLog,
    list: true,
    csvName: 'payment-logs',
    run: (ctx, { query }) => listPaymentLogs(ctx, query),
  })
}

function summarizeLogsAt(id: string, path: string): Operation<Deps> {
  return operation({
    id: `${id}.summary`,
    needs: { role: 'viewer', scope: 'read' },
    method: 'GET',
    path: `${path}/summary`,
    summary: 'Totals per route and token.',
    description: 'Counts payments that have not failed, of the 500 most paid routes.',
    query: schema.SummaryQuery,
    output: z.array(schema.RouteSummary),
    cost: (_, query) => summaryCost(query),
    run: (ctx, { query }) => summarizeLogs(ctx, query),
  })
}

const twoDaysMs = 2 * 86_400_000
/** The cost of a summary of one route for a year and for a longer period. */
const summaryCostMax = 200

/** It reads the sums of all days, and with a route each quarter of an hour in which others were paid more, up to a second for a year. */
function summaryCost({ route, from, to }: schema.LogFilters): number {
  if (route === undefined) return 20
  if (from === undefined || to === undefined) return summaryCostMax
  return Math.min(summaryCostMax, 20 + Math.max(0, Math.floor((to.getTime() - from.getTime()) / twoDaysMs)))
}

function logOperationsAt(id: string, path: string): Operation<Deps>[] {
  return [
    listLogsAt(id, path),
    summarizeLogsAt(id, path),
    operation({
      id: `${id}.get`,
      needs: { role: 'viewer', scope: 'read' },
      method: 'GET',
      path: `${path}/{paymentLogId}`,
      summary: 'Get one payment log.',
      description: 'Shows the payment as it is now.',
      params: schema.PaymentLogParams,
      output: schema.PaymentLog,
      errors: { 'payment-log-not-found': logNotFound, archived },
      run: (ctx, { params }) => getPaymentLog(ctx, params.paymentLogId),
    }),
  ]
}

function amountErrors() {
  return {
    'amount-invalid': failBody.table['amount-invalid'],
    'amount-below-minimum': failBody.table['amount-below-minimum'],
  }
}

export const paymentOperations: readonly Operation<Deps>[] = [
  challengeOperation,
  verifyOperation,
  settleOperation,
  releaseOperation,
  getOperation,
  statisticsOperation,
  ...deliveryOperations,
  ...refundOperations,
  ...logOperationsAt('payments.logs', '/payments/logs').map((log) => ({ ...log, agent: 'reads' as const })),
  ...logOperationsAt('account.paymentLogs', '/account/payment-logs'),
]
