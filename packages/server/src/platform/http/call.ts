import { Readable } from 'node:stream'
import { z } from 'zod'
import { apiVersion } from '../api-version.ts'
import { appendAudit } from '../audit.ts'
import { type Call, type Caller, type Ctx, type Deps, shareOwnerOf } from '../ctx.ts'
import { dbInside, isDatabaseGone, isOfDeletedOrganisation } from '../db/db.ts'
import { failPlatform, Problem } from '../errors.ts'
import { EventStreamResponse } from '../event-streams/response.ts'
import { publishEvent } from '../events.ts'
import { newId, type RequestId } from '../ids.ts'
import type { Operation } from '../operation.ts'
import { describeSpan } from '../tracing/spans.ts'
import type { Identity } from './authenticate.ts'
import { RespondedBefore } from './batched-keys.ts'
import * as idempotency from './idempotency.ts'
import { readInput } from './input.ts'
import { readJson } from './json.ts'
import { ProblemRecord, problemContentType, problemRecord } from './problem.ts'
import { type RawRequest, type RawResponse, successResponse } from './success-response.ts'

export type { RawRequest, RawResponse } from './success-response.ts'

/** Created once: a schema is compiled when it is first used, which costs more than a request. */
const Params = z.record(z.string(), z.string())

/** The caller of an API key. */
export function callerOf(identity: Identity): Caller {
  const { organisationId, environment, apiKeyId, shareOwner, scopes, isSuspended } = identity
  return {
    tenant: { organisationId, environment },
    shareOwner,
    actor: { kind: 'api-key', apiKeyId },
    ...(scopes !== null && { scopes }),
    ...(isSuspended && { isSuspended }),
  }
}

/** Context of one call: the caller, the tenant, and the process's ports. */
export function makeCtx<D extends Deps>(
  deps: D,
  { tenant, actor, shareOwner, person }: Caller,
  requestId: RequestId,
  checks: Pick<Call, 'refuseEnded' | 'replayCharges' | 'takeRefusalRecord'> = {},
): D & Call {
  const ctx: D & Call = {
    ...deps,
    db: deps.fairDb(deps.db, shareOwner),
    tenant,
    shareOwner,
    actor,
    person,
    requestId,
    ...checks,
    idempotency: undefined,
    publish: (tx, type, payload) => publishEvent(ctx, tx, type, payload),
    audit: async (tx, entry) => appendAudit(ctx, tx, entry),
  }
  return ctx
}

/**
 * Runs one authenticated call of an operation: idempotency, then validation, then the handler. Never throws: an error of the handler
 * becomes a problem record, and an unexpected error a 500 without internal details.
 */
export async function callOperation(ctx: Ctx, operation: Operation<Deps>, request: RawRequest): Promise<RawResponse> {
  const { organisationId, environment } = ctx.tenant
  describeSpan({
    'purser.operation': operation.id,
    'purser.organisation.id': organisationId,
    'purser.environment': environment,
  })
  try {
    const semaphores = operation.semaphores?.(ctx.tenant, Params.parse(request.params)) ?? []
    return await ctx.withSemaphores(semaphores, () => respondOnce(ctx, operation, request))
  } catch (error) {
    return problemResponse(ctx, error)
  }
}

/** Runs the call once per Idempotency-Key, if there is one. */
async function respondOnce(ctx: Ctx, operation: Operation<Deps>, request: RawRequest): Promise<RawResponse> {
  const key = request.headers['idempotency-key']
  if (operation.method !== 'POST' || key === undefined) return response(ctx, operation, request)
  if (key.length === 0 || key.length > 255 || !/^[\x20-\x7e]+$/.test(key)) {
    const errors = [{ path: '/Idempotency-Key', message: 'must be 1 to 255 printable ASCII characters' }]
    throw failPlatform('validation-error', { errors })
  }
  if (!(await mayStore(ctx, operation, key))) return response(ctx, operation, request)
  if (operation.readContent !== undefined) return respondOnceForStream(ctx, operation, request, key)
  const fingerprint = idempotency.fingerprintOf(request.method, request.url, request.body)
  const requested = { key, fingerprint, isSecret: operation.secretResponse === true }
  const mode = operation.idempotency ?? 'transaction'
  if (mode === 'batch') return respondOnceInBatch(ctx, operation, request, requested)
  return mode === 'transaction'
    ? respondOnceInTransaction(ctx, operation, request, requested)
    : respondOnceWithLease(ctx, operation, request, requested)
}

/** Items of a page for which a list costs as much as another request. */
const itemsPerCost = 50

/** Cost of a page: one token for each 50 items. CSV costs the same. */
function pageCost({ list }: Operation<Deps>, query: unknown): number {
  const { data } = PageSize.safeParse(list === true ? query : undefined)
  return data === undefined ? 1 : Math.ceil(data.limit / itemsPerCost)
}

const PageSize = z.object({ limit: z.number() })

/** The part of the storage in which responses of operations with `isRepeatable` are stored. The other part is for those that need it. */
const repeatablePart = 0.5

/**
 * Whether the response to a new key may be stored. A tenant that has its share of the stored responses stores no more, and its request is
 * refused, unless a repeat needs no stored response. A response that is already stored is repeated.
 */
async function mayStore(
  ctx: Pick<Ctx, 'clock' | 'db' | 'keptBytes' | 'shareOwner' | 'tenant'>,
  { isRepeatable }: Operation<Deps>,
  key: string,
): Promise<boolean> {
  const current = await ctx.keptBytes.beyondShare(shareOwnerOf(ctx), isRepeatable === true ? repeatablePart : 1)
  if (current === undefined || (await idempotency.isStored(ctx, key))) return true
  if (isRepeatable === true) return false
  throw failPlatform('idempotency-storage-exceeded', { current })
}

async function response(ctx: Ctx, operation: Operation<Deps>, request: RawRequest): Promise<RawResponse> {
  const input = readInput(operation, request)
  const cost = operation.cost?.(input.body as never, input.query as never) ?? pageCost(operation, input.query)
  if (cost > 1) request.charge?.(cost - 1)
  const result = await operation.run(ctx, input as never)
  return successResponse(operation, request, result)
}

async function respondOnceInTransaction(
  ctx: Ctx,
  operation: Operation<Deps>,
  request: RawRequest,
  requested: idempotency.IdempotentRequest,
): Promise<RawResponse> {
  const secret = operation.secretResponse === true || operation.secretInput === true
  try {
    return await ctx.db.tx(async (tx) => {
      const claim = await idempotency.claimInTransaction(ctx, tx, requested)
      if (claim.kind !== 'first') return repeated(ctx, operation, request, { ...claim, key: requested.key })
      const fresh = await response({ ...ctx, db: dbInside(tx) }, operation, request)
      const stored = storable(fresh)
      const resourceId = resourceOfLarge(operation, request, stored.body)
      await idempotency.storeInTransaction(ctx, tx, requested, { response: stored, secret, resourceId })
      return fresh
    })
  } catch (error) {
    return refuseOnce(ctx, operation, requested, error)
  }
}

/** As `respondOnceInTransaction`, for a handler that commits the request, and its key, together with others. */
async function respondOnceInBatch(
  ctx: Ctx,
  operation: Operation<Deps>,
  request: RawRequest,
  requested: idempotency.IdempotentRequest,
): Promise<RawResponse> {
  const storedAs = (result: unknown) => {
    const { body, ...stored } = storable(successResponse(operation, request, result))
    const resourceId = resourceOfLarge(operation, request, body)
    return resourceId === undefined ? { ...stored, body, resourceId: null } : { ...stored, body: null, resourceId }
  }
  try {
    return await response({ ...ctx, batchedKey: { ...requested, storedAs } }, operation, request)
  } catch (error) {
    if (!(error instanceof RespondedBefore)) return refuseOnce(ctx, operation, requested, error)
    return repeated(ctx, operation, request, { ...error.claim, key: requested.key })
  }
}

/** Returns the key of the resource from which a response that is too large to be stored is rebuilt. */
function resourceOfLarge(operation: Operation<Deps>, request: RawRequest, body: Uint8Array): string | undefined {
  if (!idempotency.isLarge(body)) return undefined
  return operation.resourceOf?.(JSON.parse(new TextDecoder().decode(body)), request.params)
}

/** Converts an error to its refusal, and stores the refusal for the key if a repeat must get the same one. */
async function refuseOnce(
  ctx: Ctx,
  operation: Operation<Deps>,
  requested: idempotency.IdempotentRequest,
  error: unknown,
): Promise<RawResponse> {
  const refusal = problemResponse(ctx, error)
  const ownRefusal = error instanceof Problem && error.code.startsWith('idempotency-')
  const stored = storable(refusal)
  if (!ownRefusal && idempotency.isKeptUncommitted(stored))
    await storeRefusal(ctx, requested, { response: stored, secret: operation.secretInput === true })
  return refusal
}

/** Stores a refusal unless another request with the key runs or has run: its effect is the one that counts. */
async function storeRefusal(
  ctx: Ctx,
  requested: idempotency.IdempotentRequest,
  refusal: { readonly response: idempotency.StoredResponse; readonly secret: boolean },
): Promise<void> {
  try {
    await ctx.db.tx(async (tx) => {
      const claim = await idempotency.claimInTransaction(ctx, tx, requested)
      if (claim.kind === 'first') await idempotency.storeInTransaction(ctx, tx, requested, refusal)
    })
  } catch (error) {
    if (!(error instanceof Problem)) throw error
  }
}

async function respondOnceWithLease(
  ctx: Ctx,
  operation: Operation<Deps>,
  request: RawRequest,
  requested: idempotency.IdempotentRequest,
): Promise<RawResponse> {
  const claim = await idempotency.claimWithLease(ctx, requested, ctx.requestId)
  if (claim.kind !== 'first') return repeated(ctx, operation, request, { ...claim, key: requested.key })
  const handle = idempotency.leaseHandle(ctx, requested, ctx.requestId)
  const fresh = await response({ ...ctx, idempotency: handle }, operation, request).catch((error: unknown) =>
    problemResponse(ctx, error),
  )
  if (fresh.runsAgain === true) await idempotency.releaseClaim(ctx, requested.key, ctx.requestId)
  else if (fresh.isOpen !== true) await idempotency.finishLease(ctx, requested, ctx.requestId, storable(fresh))
  return fresh
}

/** Returns the response to a repeat: the stored one, or the resource's present state if the first response was never stored. */
async function repeated(
  ctx: Ctx,
  operation: Operation<Deps>,
  request: RawRequest,
  claim: idempotency.IdempotencyRepeat & { readonly key: string },
): Promise<RawResponse> {
  if (claim.kind === 'answered') return replayed(claim.response)
  if (operation.resume === undefined) throw failPlatform('idempotency-in-progress')
  return replayed(successResponse(operation, request, await operation.resume(ctx, claim.resourceId, claim.key)))
}

/** As `respondOnce`, for a streamed body: the handler ties the key to the body's digest, and a repeat reads its body first. */
async function respondOnceForStream(
  ctx: Ctx,
  operation: Operation<Deps>,
  request: RawRequest,
  key: string,
): Promise<RawResponse> {
  const fingerprint = (content: Uint8Array) => idempotency.fingerprintOf(request.method, request.url, content)
  const unread = { key, fingerprint: idempotency.unreadFingerprintOf(request.method, request.url) }
  const claim = ctx.requestId
  if ((await idempotency.claimUnread(ctx, unread, claim)) === 'repeat')
    return respondToRepeat(ctx, operation, request, { key, fingerprint })
  const handle = idempotency.unreadHandle(ctx, { key, claim, fingerprint })
  try {
    const fresh = await response({ ...ctx, idempotency: handle }, operation, request)
    await idempotency.finishLease(ctx, unread, claim, storable(fresh))
    return fresh
  } catch (error) {
    await idempotency.releaseClaim(ctx, key, claim)
    throw error
  }
}

async function respondToRepeat(
  ctx: Ctx,
  operation: Operation<Deps>,
  request: RawRequest,
  requested: { readonly key: string; readonly fingerprint: (content: Uint8Array) => Uint8Array },
): Promise<RawResponse> {
  const { headers, stream } = request
  const content = await operation.readContent?.(ctx, { headers, stream })
  if (content === undefined) throw new Error('a repeat cannot be compared')
  const { key } = requested
  const known = await idempotency.respondToRepeat(ctx, { key, fingerprint: requested.fingerprint(content) })
  if (known.kind === 'first') throw failPlatform('idempotency-in-progress')
  return repeated(ctx, operation, request, { ...known, key })
}

function storable({ status, headers, body }: RawResponse): idempotency.StoredResponse {
  if (body instanceof Readable || body instanceof EventStreamResponse)
    throw new Error('a streamed response cannot be stored')
  return { status, headers, body: typeof body === 'string' ? new TextEncoder().encode(body) : body }
}

function replayed(stored: RawResponse | idempotency.StoredResponse): RawResponse {
  return { ...stored, headers: { ...stored.headers, 'idempotency-replayed': 'true' } }
}

/** Converts any thrown value to a problem response, and logs what must not be shown. */
export function problemResponse(ctx: Pick<Ctx, 'log' | 'baseUrl' | 'requestId'>, error: unknown): RawResponse {
  const problem = asProblem(error)
  if (problem.entry.status >= 500)
    ctx.log.error({ err: problem.cause ?? problem, code: problem.code, requestId: ctx.requestId }, 'request failed')
  const headers: Record<string, string> = { 'content-type': problemContentType }
  if (problem.entry.status === 401) headers['www-authenticate'] = 'Bearer realm="purser"'
  if (problem.entry.status === 416) headers['content-range'] = `bytes */${problem.members.size}`
  const retryAfter = problem.members.retryAfterSeconds
  if (typeof retryAfter === 'number') headers['retry-after'] = String(retryAfter)
  else if (problem.entry.status === 503 || problem.code === 'idempotency-in-progress') headers['retry-after'] = '1'
  return {
    status: problem.entry.status,
    headers,
    body: JSON.stringify(problemRecord(problem, ctx.baseUrl, ctx.requestId)),
  }
}

/** The problem record for an error: the error itself if it is a problem, otherwise a general one that discloses nothing about it. */
export function asProblem(error: unknown): Problem {
  if (error instanceof Problem) return error
  if (isDatabaseGone(error)) return failPlatform('service-unavailable', {}, error)
  if (isOfDeletedOrganisation(error)) return failPlatform('unauthorized', { detail: ofDeleted }, error)
  return failPlatform('internal-error', {}, error)
}

/** For a request that began before its organisation was deleted. */
const ofDeleted = 'API key is invalid or missing: the organisation was deleted.'

/** Adds the members that an operation has in every problem record. */
export function withRefusalMembers(
  operation: Operation,
  request: Pick<RawRequest, 'body'>,
  response: RawResponse,
): RawResponse {
  if (operation.refusalMembers === undefined || response.headers['content-type'] !== problemContentType) return response
  if (typeof response.body !== 'string' && !(response.body instanceof Uint8Array)) return response
  const text = typeof response.body === 'string' ? response.body : new TextDecoder().decode(response.body)
  const record = ProblemRecord.parse(JSON.parse(text))
  const members = operation.refusalMembers(record, parsedBody(request))
  return { ...response, body: JSON.stringify({ ...record, ...members }) }
}

/** Largest body that is parsed for a refusal: a refused caller may send many, and pays for none of them. */
const refusedBytesMax = 65_536

function parsedBody({ body }: Pick<RawRequest, 'body'>): unknown {
  if (body.byteLength > refusedBytesMax) return undefined
  try {
    return readJson(body)
  } catch {
    return undefined
  }
}

/** The headers of every response, of whatever kind. */
export function commonHeaders(requestId: string): Readonly<Record<string, string>> {
  return { 'x-request-id': requestId, 'x-service-version': apiVersion, 'x-content-type-options': 'nosniff' }
}

/** A new request id. */
export function newRequestId(deps: Pick<Deps, 'clock' | 'random'>): RequestId {
  return newId('req', deps)
}
