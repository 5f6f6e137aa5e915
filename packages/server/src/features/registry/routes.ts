import { routePatternOf } from '@purser/protocol'
import type { Environment, Tenant } from '../../platform/ctx.ts'
import type { Queryable, Tx } from '../../platform/db/db.ts'
import { defineErrors } from '../../platform/errors.ts'
import { type Id, newId } from '../../platform/ids.ts'
import type { Operation, Page } from '../../platform/operation.ts'
import { openCursor, pageOf } from '../../platform/wire.ts'
import { planOf, unlimited } from '../plans/index.ts'
import { type Ctx, type Deps, operation } from './ports.ts'
import * as schema from './schema.ts'
import { paramsMax, type RegistryRoute, type RouteParam, type RouteQuery, type RouteReport } from './schema.ts'
import {
  countPublicRoutes,
  findRoute,
  forgetOldest,
  insertRoute,
  listPublicRoutes,
  listRoutes,
  lockRoute,
  markReported,
  type PublicRow,
  type ReportedRoute,
  type RouteRow,
  setPublic,
} from './store.ts'

/**
 * Stores a paid route as its middleware reported it: one row per host, method and route pattern, also for concurrent reports. Possible credentials
 * are dropped before anything is stored.
 */
async function acceptSnapshot(
  ctx: Pick<Ctx, 'clock' | 'db' | 'paymentLogExists' | 'random' | 'tenant'>,
  snapshot: RouteReport,
): Promise<{ accepted: true }> {
  const { paymentLogId } = snapshot
  if (paymentLogId !== undefined && !(await ctx.paymentLogExists(ctx.db, ctx.tenant, paymentLogId)))
    throw failBody('payment-log-not-found')
  const seen = withinBytes(seenRoute(ctx, snapshot))
  await ctx.db.tx(async (tx) => {
    if (await insertRoute(tx, ctx.tenant, seen)) return keepWithinPlan(tx, ctx.tenant)
    const known = await lockRoute(tx, ctx.tenant, seen)
    // Undefined if it was deleted between the two statements; the report then counts as made before that.
    if (known !== undefined) await markReported(tx, ctx.tenant, withinBytes(withKnown(known, seen)))
  })
  return { accepted: true }
}

/** Deletes the oldest routes above the plan's limit, so that a route that is reported without a pattern cannot fill the table. */
async function keepWithinPlan(tx: Tx, tenant: Tenant): Promise<void> {
  const { registryRoutes } = await planOf(tx, tenant.organisationId)
  if (registryRoutes !== unlimited) await forgetOldest(tx, tenant, registryRoutes)
}

function seenRoute(ctx: Pick<Ctx, 'clock' | 'random'>, snapshot: RouteReport): ReportedRoute {
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

/**
 * Merges a route's known parameters with those of another report. One call shows only some of them, so known ones stay, and new
 * ones replace those with the same name; above 64, the oldest are dropped.
 */
function mergeParams(before: readonly RouteParam[], now: readonly RouteParam[]): RouteParam[] {
  const byName = new Map<string, RouteParam>()
  for (const param of [...now, ...before]) if (!byName.has(param.name)) byName.set(param.name, param)
  return [...byName.values()].slice(0, paramsMax)
}

/** Most bytes of a route's parameters as JSON. */
const paramsBytesMax = 16_384

/**
 * Returns the route with at most 16 KiB of parameters: without their examples if they are more, and with ever fewer of each kind if the names alone are
 * more. Lists and discovery read many routes at once.
 */
function withinBytes(route: ReportedRoute): ReportedRoute {
  if (bytesOf(route) <= paramsBytesMax) return route
  const each = (of: (params: readonly RouteParam[]) => RouteParam[]): ReportedRoute => {
    const { headers, queryParams, bodyParams } = route
    return { ...route, headers: of(headers), queryParams: of(queryParams), bodyParams: of(bodyParams) }
  }
  const few = (most: number) => each((params) => params.slice(0, most).map(withoutExample))
  let most = paramsMax
  while (most > 1 && bytesOf(few(most)) > paramsBytesMax) most = Math.floor(most / 2)
  return few(most)
}

function bytesOf({ headers, queryParams, bodyParams }: ReportedRoute): number {
  return Buffer.byteLength(JSON.stringify([headers, queryParams, bodyParams]))
}

/** Matched anywhere in a name after everything but letters and digits is removed. */
const credentialPart =
  /auth|cookie|apikey|accesskey|privatekey|secretkey|signingkey|token|secret|passw|passphrase|passcode|signature|credential|session|jwt|bearer|mnemonic|payment|csrf|xsrf/

/** Matched only as a word of a name: too short, or too common inside other words, to be matched anywhere. */
const credentialWord = /^(?:key|sig|pin|otp|pwd|pass|sid|seed|hmac|mac|cvc|cvv|pan|ssn)$/

/** Values that look like credentials, whatever their name. */
const credentialValue =
  /^(?:bearer|basic|digest|payment)\s|^eyJ[\w-]{8,}\.|(?:svc|sk|pk|rk)_(?:test|live)_|whsec_|-----BEGIN/i

/**
 * Whether a value under this name may be a credential; a missing example is better than a secret in the registry. Case,
 * separators and compatibility forms of letters (NFKC) make no difference.
 */
export function isCredentialName(name: string): boolean {
  const plain = name.normalize('NFKC')
  const words = plain
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z0-9]+/)
  return credentialPart.test(words.join('')) || words.some((word) => credentialWord.test(word))
}

/** Returns the parameter as it may be stored: without its example if the name or the value suggests a credential. */
export function redacted({ example, ...param }: RouteParam): RouteParam {
  const isSecret = isCredentialName(param.name) || (typeof example === 'string' && credentialValue.test(example.trim()))
  return example === undefined || isSecret ? param : { ...param, example }
}

/** Returns a page of the routes of the caller's organisation and environment. */
async function pageOfRoutes(ctx: Pick<Ctx, 'db' | 'tenant'>, query: RouteQuery): Promise<Page<RegistryRoute>> {
  const { limit, cursor, ...filters } = query
  const rows = await listRoutes(ctx.db, ctx.tenant, filters, { limit, after: openCursor(cursor) })
  const page = pageOf(rows, limit, (row) => row.id)
  return { ...page, items: page.items.map(asRoute) }
}

async function getRoute(ctx: Pick<Ctx, 'db' | 'tenant'>, routeId: Id<'reg'>): Promise<RegistryRoute> {
  const row = await findRoute(ctx.db, ctx.tenant, routeId)
  if (row === undefined) throw fail('registry-route-not-found')
  return asRoute(row)
}

/** Makes a route public to every organisation of the environment through the facilitator's discovery, or private again. */
function setRouteVisibility(
  ctx: Pick<Ctx, 'audit' | 'db' | 'tenant'>,
  { routeId, isPublic }: { readonly routeId: Id<'reg'>; readonly isPublic: boolean },
): Promise<RegistryRoute> {
  return ctx.db.tx(async (tx) => {
    const before = await findRoute(tx, ctx.tenant, routeId)
    if (before?.isPublic === isPublic) return asRoute(before)
    const row = await setPublic(tx, ctx.tenant, { id: routeId, isPublic })
    if (row === undefined) throw fail('registry-route-not-found')
    await ctx.audit(tx, { action: 'registry.routes.update', target: routeId, details: { isPublic } })
    return asRoute(row)
  })
}

function asRoute(row: RouteRow): RegistryRoute {
  return { ...row, snapshotCount: Number(row.snapshotCount) }
}

const fail = defineErrors({
  'registry-route-not-found': {
    status: 404,
    title: 'Registry Route Not Found',
    detail: 'No such route.',
    causes: [
      'This organisation has no route with this id. It may have been replaced: when the plan’s number of routes is reached, a new report replaces the route that was reported longest ago.',
    ],
    fix: 'List the routes with `GET /registry/routes`. A route appears again when the middleware serves it or `POST /registry/snapshots` reports it.',
  },
})

/** Errors whose subject is named in the body: 422 where the same subject in a path would be 404. */
const failBody = defineErrors({
  'payment-log-not-found': {
    status: 422,
    title: 'Payment Log Not Found',
    detail: 'No payment log has this paymentLogId.',
    causes: ['This organisation has no payment log with the snapshot’s `paymentLogId` in this environment.'],
    fix: 'Send the `plog_…` id from `GET /account/payment-logs`, or leave `paymentLogId` out: it is optional.',
  },
})

/** The cost of a list that reads all routes of a tenant. */
const searchCost = 10

export const registryOperations: readonly Operation<Deps>[] = [
  operation({
    id: 'registry.snapshots.create',
    needs: { role: 'member', scope: 'payments' },
    method: 'POST',
    path: '/registry/snapshots',
    summary: 'Report a paid route. The middlewares do this automatically.',
    description:
      'One route per host, method and pattern. Path segments that look like identifiers become {id}. A known route is updated. Examples of fields named like a credential are dropped.',
    settingCost: 0.1,
    input: schema.RouteReport,
    output: schema.SnapshotAccepted,
    status: 202,
    errors: failBody.table,
    run: (ctx, { body }) => acceptSnapshot(ctx, body),
  }),
  operation({
    id: 'registry.routes.list',
    needs: { role: 'viewer', scope: 'read' },
    agent: 'reads',
    method: 'GET',
    path: '/registry/routes',
    summary: 'List your reported routes, newest first.',
    description: 'With price and parameters, as they were last reported.',
    query: schema.RouteQuery,
    output: schema.RegistryRoute,
    list: true,
    // No index has what these name: routes are read until a page is full.
    cost: (_, { host, q, protocol, maxAmount }) =>
      (host ?? q ?? protocol ?? maxAmount) === undefined ? undefined : searchCost,
    run: (ctx, { query }) => pageOfRoutes(ctx, query),
  }),
  operation({
    id: 'registry.routes.get',
    needs: { role: 'viewer', scope: 'read' },
    agent: 'reads',
    method: 'GET',
    path: '/registry/routes/{id}',
    summary: 'Get one paid route.',
    description: 'With its price and parameters, as they were last reported.',
    params: schema.RouteParamsInPath,
    output: schema.RegistryRoute,
    errors: fail.table,
    run: (ctx, { params }) => getRoute(ctx, params.id),
  }),
  operation({
    id: 'registry.routes.update',
    settingCost: 1,
    needs: { role: 'member', scope: 'payments' },
    method: 'PATCH',
    path: '/registry/routes/{id}',
    summary: 'Make a paid route public, or private again.',
    description:
      'GET /facilitator/discovery/resources lists a public route for every organisation of the environment: your organisation’s id, address, method, price, protocols, names of parameters. Private by default.',
    params: schema.RouteParamsInPath,
    input: schema.RouteChange,
    output: schema.RegistryRoute,
    errors: fail.table,
    run: (ctx, { params, body }) => setRouteVisibility(ctx, { routeId: params.id, isPublic: body.isPublic }),
  }),
]

/** A public route as every organisation sees it: its publisher, and the names and types of its parameters, without examples. */
export interface PublicRoute {
  readonly url: string
  readonly lastSeenAt: Date
  readonly details: Readonly<Record<string, unknown>>
}

/** Returns a page of the routes that organisations have made public in an environment, and their number, at most `countedMax`. */
export async function publicRoutes(
  db: Queryable,
  environment: Environment,
  page: { readonly limit: number; readonly offset: number; readonly countedMax: number },
): Promise<{ readonly routes: readonly PublicRoute[]; readonly total: number }> {
  const [rows, total] = await Promise.all([
    listPublicRoutes(db, environment, page),
    countPublicRoutes(db, environment, page.countedMax),
  ])
  return { routes: rows.map(asPublic), total }
}

function asPublic(row: PublicRow): PublicRoute {
  const { organisationId: publisher, method, amount, protocols, bodyContentType } = row
  const input = { ...shownParams(row), bodyContentType }
  const details = { metadata: { publisher, method, price: { amount, currency: 'USD' }, protocols, input } }
  return { url: `https://${row.host}${row.routePattern}`, lastSeenAt: row.lastSeenAt, details }
}

/** Most bytes of the parameters of a route in discovery as JSON, which are those of about forty. */
const shownBytesMax = 2_048

/** Returns the first parameters of each kind that are small enough together: what one route shows, all who search have to read. */
function shownParams(row: PublicRow): Pick<PublicRow, 'headers' | 'queryParams' | 'bodyParams'> {
  let left = shownBytesMax
  const first = (params: readonly RouteParam[]): RouteParam[] =>
    params.map(withoutExample).filter((param) => {
      left -= Buffer.byteLength(JSON.stringify(param)) + 1
      return left >= 0
    })
  const [queryParams, bodyParams, headers] = [first(row.queryParams), first(row.bodyParams), first(row.headers)]
  return { headers, queryParams, bodyParams }
}

function withoutExample({ name, type, required }: RouteParam): RouteParam {
  return { name, type, required }
}
