import { routePatternOf } from '@purser/protocol'
import type { Tenant } from '../../platform/ctx.ts'
import type { Tx } from '../../platform/db/db.ts'
import { newId } from '../../platform/ids.ts'
import { planOf, unlimited } from '../plans/index.ts'
import { failBody } from './errors.ts'
import { mergeParams } from './merge.ts'
import type { Ctx } from './ports.ts'
import { redacted } from './redact.ts'
import type { RouteParam, Snapshot } from './schema.ts'
import { forgetOldest, insertRoute, lockRoute, markReported, type ReportedRoute, type RouteRow } from './store.ts'

/**
 * Stores a paid route as its middleware reported it: one row per host, method and normalized route, however many report it at
 * once. Possible credentials are dropped before anything is stored.
 */
export async function acceptSnapshot(ctx: Ctx, snapshot: Snapshot): Promise<{ accepted: true }> {
  const { paymentLogId } = snapshot
  if (paymentLogId !== undefined && !(await ctx.paymentLogExists(ctx.db, ctx.tenant, paymentLogId)))
    throw failBody('payment-log-not-found')
  const seen = seenRoute(ctx, snapshot)
  await ctx.db.tx(async (tx) => {
    if (await insertRoute(tx, ctx.tenant, seen)) return keepWithinPlan(tx, ctx.tenant)
    const known = await lockRoute(tx, ctx.tenant, seen)
    // If it was deleted between the two statements, the result is as if it had been reported just before.
    if (known !== undefined) await markReported(tx, ctx.tenant, withKnown(known, seen))
  })
  return { accepted: true }
}

/** Paths of a route that is reported without a pattern must not fill the table: the plan limits the routes of an environment. */
async function keepWithinPlan(tx: Tx, tenant: Tenant): Promise<void> {
  const { registryRoutes } = await planOf(tx, tenant.organisationId)
  if (registryRoutes !== unlimited) await forgetOldest(tx, tenant, registryRoutes)
}

function seenRoute(ctx: Ctx, snapshot: Snapshot): ReportedRoute {
  const { headers, queryParams, bodyParams, routePattern, bodyContentType, paymentLogId, ...facts } = snapshot
  return {
    ...facts,
    id: newId('reg', ctx),
    routePattern: routePatternOf(routePattern),
    headers: kept(headers.map((header) => ({ ...header, name: header.name.toLowerCase() }))),
    queryParams: kept(queryParams),
    bodyParams: kept(bodyParams),
    bodyContentType: bodyContentType ?? null,
    paymentLogId: paymentLogId ?? null,
    lastSeenAt: ctx.clock.now(),
  }
}

function kept(params: readonly RouteParam[]): RouteParam[] {
  return mergeParams([], params.map(redacted))
}

function withKnown(known: RouteRow, seen: ReportedRoute): ReportedRoute {
  return {
    ...seen,
    id: known.id,
    headers: mergeParams(known.headers, seen.headers),
    queryParams: mergeParams(known.queryParams, seen.queryParams),
    bodyParams: mergeParams(known.bodyParams, seen.bodyParams),
    bodyContentType: seen.bodyContentType ?? known.bodyContentType,
    paymentLogId: seen.paymentLogId ?? known.paymentLogId,
  }
}
