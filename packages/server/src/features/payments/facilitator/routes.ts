import { chainErrors } from '../../../chain/errors.ts'
import { custodyErrors } from '../../../custody/errors.ts'
import { type Operation, operation } from '../../../platform/operation.ts'
import { planErrors } from '../../plans/index.ts'
import { fail } from '../errors.ts'
import { discoverResources } from './discovery.ts'
import { settleRefusal, verifyRefusal } from './refusal.ts'
import * as schema from './schema.ts'
import { settle, settledBefore } from './settle.ts'
import { supported } from './supported.ts'
import { verifiedBefore, verify } from './verify.ts'

const errors = {
  ...chainErrors,
  ...custodyErrors,
  'payment-limit-reached': planErrors['payment-limit-reached'],
  'settlement-budget-exceeded': fail.table['settlement-budget-exceeded'],
  'too-many-open-payments': fail.table['too-many-open-payments'],
  'payment-identifier-conflict': fail.table['payment-identifier-conflict'],
}

/** The facilitator of x402, as its specification has it, versions 1 and 2. */
export const facilitatorOperations: readonly Operation[] = [
  operation({
    id: 'facilitator.verify',
    method: 'POST',
    path: '/facilitator/verify',
    summary: 'Verify a payment for an x402 server of any make, and record it, once.',
    description:
      'A bad payment is 200 with isValid false. A signature is found valid once: asking again says that it is used. Every problem record carries isValid and invalidReason too.',
    input: schema.FacilitatorBody,
    output: schema.VerifyAnswer,
    errors,
    takesAnyText: true,
    refusalMembers: (problem) => ({ ...verifyRefusal(problem) }),
    idempotency: 'intent',
    resume: verifiedBefore,
    run: (ctx, { body }) => verify(ctx, body),
  }),
  operation({
    id: 'facilitator.settle',
    method: 'POST',
    path: '/facilitator/settle',
    summary: 'Bring a payment to the chain for an x402 server of any make, and wait for the outcome.',
    description:
      'Asking again joins the same settlement. Success is answered once; whoever got settlement_pending gets it by asking again. Every problem record carries success, errorReason, transaction and network too.',
    input: schema.FacilitatorBody,
    output: schema.SettleAnswer,
    answerHeaders: {
      'EXTENSION-RESPONSES':
        'What became of the extensions that the payment names (x402 version 2), as JSON in base64.',
    },
    errors,
    takesAnyText: true,
    refusalMembers: (problem, body) => ({ ...settleRefusal(problem, body) }),
    idempotency: 'intent',
    resume: settledBefore,
    run: (ctx, { body }) => settle(ctx, body),
  }),
  operation({
    id: 'facilitator.supported',
    method: 'GET',
    path: '/facilitator/supported',
    summary: 'What can be paid through the facilitator in the environment of the key.',
    output: schema.Supported,
    run: (ctx) => supported(ctx),
  }),
  operation({
    id: 'facilitator.resources',
    agent: 'searches',
    method: 'GET',
    path: '/facilitator/discovery/resources',
    summary:
      'List what declared itself by the bazaar extension when it was paid for, and what its organisation made public.',
    query: schema.DiscoveryQuery,
    output: schema.DiscoveredResources,
    run: (ctx, { query }) => discoverResources(ctx, query),
  }),
]
