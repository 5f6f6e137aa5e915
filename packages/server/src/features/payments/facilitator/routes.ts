import { chainErrors } from '../../../chain/errors.ts'
import { custodyErrors } from '../../../custody/errors.ts'
import type { Operation } from '../../../platform/operation.ts'
import { planErrors } from '../../plans/index.ts'
import { fail } from '../errors.ts'
import { type Deps, operation } from '../ports.ts'
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

/** Operations of the x402 facilitator, versions 1 and 2 of the specification. */
export const facilitatorOperations: readonly Operation<Deps>[] = [
  operation({
    id: 'facilitator.verify',
    needs: { role: 'member', scope: 'payments' },
    method: 'POST',
    path: '/facilitator/verify',
    summary: 'Verify a payment for any x402 server, and record it, once.',
    description:
      'A bad payment is 200 with isValid false. A signature is valid once: a repeated request reports it as used. Every problem record carries isValid and invalidReason too.',
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
    needs: { role: 'member', scope: 'payments' },
    method: 'POST',
    path: '/facilitator/settle',
    summary: 'Settle a payment for any x402 server, and wait for the outcome.',
    description:
      'A repeated request joins the same settlement. Success is returned once; a server that received settlement_pending gets it by repeating the request. Every problem record carries success, errorReason, transaction and network too.',
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
    needs: { role: 'viewer', scope: 'read' },
    method: 'GET',
    path: '/facilitator/supported',
    summary: 'What can be paid through the facilitator in the environment of the key.',
    description: 'A server that sells by x402 chooses its offers from these schemes, networks and extensions.',
    output: schema.Supported,
    run: (ctx) => supported(ctx),
  }),
  operation({
    id: 'facilitator.resources',
    needs: { role: 'viewer', scope: 'read' },
    agent: 'searches',
    method: 'GET',
    path: '/facilitator/discovery/resources',
    summary:
      'List what declared itself by the bazaar extension when it was paid for, and what its organisation made public.',
    description:
      'Of all organisations in the environment of the key, with their payment requirements. Pay one with `wallets.pay`.',
    query: schema.DiscoveryQuery,
    output: schema.DiscoveredResources,
    run: (ctx, { query }) => discoverResources(ctx, query),
  }),
]
