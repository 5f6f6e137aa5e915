import { eip2612GasSponsoring, type SupportedKind, supportedResponse } from '@purser/protocol'
import type { z } from 'zod'
import { chainErrors } from '../../../chain/errors.ts'
import { custodyErrors } from '../../../custody/errors.ts'
import type { PaymentId } from '../../../platform/ids.ts'
import type { Operation } from '../../../platform/operation.ts'
import { planErrors } from '../../plans/index.ts'
import { fail } from '../errors.ts'
import { additionalKinds, schemeOf } from '../methods/index.ts'
import type { KindsCtx, ReadCredential } from '../methods/method.ts'
import { paymentIdentifierKey } from '../new-payment.ts'
import { type Ctx, type Deps, operation, type PublicRoute } from '../ports.ts'
import { refuseWorthless } from '../record.ts'
import { findPayment } from '../store.ts'
import { countResources, listResources, type ResourceRow } from './discovery-store.ts'
import { servedNetworks } from './networks.ts'
import { refusalOf, refuseUnstorableText, settleRefusal, verifyRefusal } from './refusal.ts'
import type { DiscoveredResources, DiscoveryQuery, FacilitatorBody, Supported, VerifyResponse } from './schema.ts'
import * as schema from './schema.ts'
import { admit, settle, settledBefore } from './settle.ts'

/**
 * Verifies a payment for an external x402 server, and records it. `isValid: true` is returned once per signature, so that copies
 * that arrive together buy one thing. A bad payment is a negative response; a failing node or a limit is a problem.
 * Source: x402 specification v2 section 7.1; docs/decisions/0018.
 */
export async function verify(ctx: Ctx, body: FacilitatorBody): Promise<VerifyResponse> {
  let claim: ReadCredential | undefined
  try {
    refuseUnstorableText(body)
    const reading = schemeOf(body).read(ctx, body, 'verify')
    claim = reading.claim
    await admit(ctx, body, reading, 'facilitator')
    return { isValid: true, payer: claim.payer }
  } catch (error) {
    return refusedAs(error, claim)
  }
}

function refusedAs(error: unknown, claim: Parameters<typeof refusalOf>[1]): VerifyResponse {
  const refusal = refusalOf(error, claim)
  if (refusal === undefined) throw error
  return { isValid: false, invalidReason: refusal.reason, invalidMessage: refusal.message, payer: refusal.payer }
}

/**
 * Returns the present verdict on a payment that was recorded, for a repeat with the same Idempotency-Key whose first response was
 * never sent.
 */
async function verifiedBefore(
  ctx: Pick<Ctx, 'clock' | 'db' | 'screening' | 'tenant'>,
  paymentId: string,
): Promise<VerifyResponse> {
  const payment = await findPayment(ctx.db, ctx.tenant, paymentId as PaymentId)
  if (payment === undefined) throw fail('payment-not-found')
  const payer = payment.payer ?? undefined
  try {
    refuseWorthless(ctx, payment)
    return { isValid: true, payer }
  } catch (error) {
    return refusedAs(error, { payer })
  }
}

/** A list counts up to 1,000 items after its page, of all organisations. */
const discoveryCost = 5

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
    output: schema.VerifyResponse,
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
    output: schema.SettleResponse,
    responseHeaders: {
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
    summary: 'List the payment kinds that the facilitator supports.',
    description:
      'The schemes, networks and extensions of the environment of the key. A server that sells by x402 chooses its offers from them.',
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
      'List resources that payments declared by the bazaar extension, and routes that organisations made public.',
    description:
      'Of all organisations in the environment of the key, with their payment requirements. Nobody checks who owns a listed URL: request it, and pay its own 402 with `wallets.pay`.',
    query: schema.DiscoveryQuery,
    output: schema.DiscoveredResources,
    cost: () => discoveryCost,
    run: (ctx, { query }) => discoverResources(ctx, query),
  }),
]

/**
 * Returns the kinds of payment that the caller's environment supports, and the account that settles them. Source: x402
 * specification v2 section 7.3.
 */
async function supported(ctx: KindsCtx & Pick<Ctx, 'tenant'>): Promise<z.input<typeof Supported>> {
  const networks = servedNetworks(ctx)
  const { kinds, signers } = supportedResponse(networks, [ctx.settlerAddress])
  return {
    kinds: [...kinds, ...(await additionalKinds(ctx, networks))].map(asKind),
    extensions: ['bazaar', paymentIdentifierKey, eip2612GasSponsoring],
    signers: Object.fromEntries(Object.entries(signers).map(([family, accounts]) => [family, [...accounts]])),
  }
}

function asKind({ extra, ...kind }: SupportedKind): z.input<typeof Supported>['kinds'][number] {
  return extra === undefined ? kind : { ...kind, extra: { ...extra } }
}

type Item = z.input<typeof DiscoveredResources>['items'][number]

/** Number of resources beyond a page that its total counts at most. */
const countedBeyondMax = 1_000

/**
 * Returns the resources that payments declared in the caller's environment, of all sellers, and after them the routes that
 * organisations made public.
 * Source: x402 specification v2 section 8.
 */
async function discoverResources(
  ctx: Pick<Ctx, 'db' | 'publicRoutes' | 'tenant'>,
  query: DiscoveryQuery,
): Promise<z.input<typeof DiscoveredResources>> {
  const { environment } = ctx.tenant
  const { limit, offset } = query
  const countedMax = offset + limit + countedBeyondMax
  const [rows, declared] = await ctx.db.tx(
    async (tx) =>
      [await listResources(tx, environment, query), await countResources(tx, environment, query, countedMax)] as const,
    { readsInOrder: true },
  )
  const rest = {
    limit: limit - rows.length,
    offset: Math.max(0, offset - declared),
    countedMax: countedMax - declared,
  }
  const shown = await publicRoutesFor(ctx, query, rest)
  const items = [...rows.map(asItem), ...shown.routes.map(publicItemOf)]
  return { x402Version: 2, items, pagination: { limit, offset, total: declared + shown.total } }
}

/**
 * Returns a page of public routes. They have no accounts, schemes, networks or extensions, so a filter on one of these excludes
 * them.
 */
async function publicRoutesFor(
  ctx: Pick<Ctx, 'db' | 'publicRoutes' | 'tenant'>,
  query: DiscoveryQuery,
  page: { readonly limit: number; readonly offset: number; readonly countedMax: number },
) {
  const { type = 'http', payTo, scheme, network, extensions } = query
  const isNarrowed = [payTo, scheme, network, extensions].some((filter) => filter !== undefined)
  if (ctx.publicRoutes === undefined || type !== 'http' || isNarrowed) return { routes: [], total: 0 }
  return ctx.publicRoutes(ctx.db, ctx.tenant.environment, page)
}

function asItem({ resource, type, x402Version, accepts, details, updatedAt }: ResourceRow): Item {
  return { ...details, resource, type, x402Version, accepts, lastUpdated: updatedAt.toISOString() }
}

/**
 * Returns a public route as a discovery item without payment options. Its price is known here but its accounts are not; the
 * route's own 402 states them.
 */
function publicItemOf({ url, lastSeenAt, details }: PublicRoute): Item {
  return { ...details, resource: url, type: 'http', x402Version: 2, accepts: [], lastUpdated: lastSeenAt.toISOString() }
}
