import { createHash } from 'node:crypto'
import { z } from 'zod'
import { requireFresh } from '../access.ts'
import { instantOf } from '../clock.ts'
import { actorId, type Ctx, type IdempotencyHandle, shareOwnerOf } from '../ctx.ts'
import { type Queryable, sql, type Tx } from '../db/db.ts'
import { deleteExpired, type Sweep } from '../db/delete-expired.ts'
import { lockNameOfText } from '../db/lock-name.ts'
import { failPlatform, isProblem } from '../errors.ts'
import { bytesPerKey, keptBytesMax } from './kept-bytes.ts'
import { claimUnused, storeEnded, tie, tieAlone } from './leases-together.ts'

/** Milliseconds for which the first request may run before another may take over its key (only for handlers that wait for something outside). */
const runningMsMax = 60_000
/** Milliseconds for which a response is stored. */
const keptMs = 24 * 60 * 60 * 1000

export const Stored = z.object({
  fingerprint: z.instanceof(Uint8Array),
  apiKeyId: z.string(),
  state: z.enum(['running', 'done']),
  runningUntil: z.date().nullable(),
  resourceId: z.string().nullable(),
  status: z.number().nullable(),
  headers: z.record(z.string(), z.string()).nullable(),
  /** A response stored before decision 0200; sealed if `sealed`. */
  body: z.instanceof(Uint8Array).nullable(),
  sealedBody: z.instanceof(Uint8Array).nullable(),
  /** Whether the response has a secret. Its fingerprint is sealed too, and no other key gets the response. */
  sealed: z.boolean(),
  createdAt: z.date(),
})
export type Stored = z.output<typeof Stored>
/** Every column of a `Stored`. */
export const storedColumns = sql`fingerprint, api_key_id, state, running_until, resource_id, status, headers, body, sealed_body, sealed, created_at`

/** The fingerprint of a request with an Idempotency-Key, compared byte by byte: method, path and the body as sent. */
export function fingerprintOf(method: string, url: string, body: Uint8Array): Uint8Array {
  return createHash('sha256').update(`${method} ${url}\n`).update(body).digest()
}

/** Fingerprint of a streamed body before it was read: the key is reserved under this value, which no complete request has. */
export function unreadFingerprintOf(method: string, url: string): Uint8Array {
  return createHash('sha256').update(`unread ${method} ${url}\n`).digest()
}

export interface IdempotentRequest {
  readonly key: string
  readonly fingerprint: Uint8Array
  /**
   * The response contains a secret: only the API key that sent the first request gets it again, or the person, with a fresh sign-in, and the
   * fingerprint is stored sealed like the response.
   */
  readonly isSecret?: boolean
}

export interface StoredResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** The body's bytes; empty for none. */
  readonly body: Uint8Array
}

export type IdempotencyClaim = { readonly kind: 'first' } | IdempotencyRepeat
export type IdempotencyRepeat =
  | { readonly kind: 'answered'; readonly response: StoredResponse }
  | { readonly kind: 'unanswered'; readonly resourceId: string }

/** Whether a response with this status is stored once an intent was committed: not if the client should retry. */
export function isKept(status: number): boolean {
  return status !== 401 && status !== 429 && status < 500
}

/**
 * Whether a response is stored if nothing was committed before it: successes, and conflicts without `Retry-After`, up to the size limit. A conflict
 * with `Retry-After` is temporary.
 */
export function isKeptUncommitted({ status, headers, body }: StoredResponse): boolean {
  return (status < 400 || (status === 409 && headers['retry-after'] === undefined)) && !isLarge(body)
}

/** Whether a body is not stored. The repeat of a large response is made from its resource, or anew if nothing was committed. */
export function isLarge(body: Uint8Array): boolean {
  return body.byteLength > keptBytesMax
}

/**
 * For handlers that commit in one transaction: claims the key for that transaction. A concurrent second request is refused immediately, unless the
 * key already has its response, which is returned even while another request reads it. A crash releases the key and leaves no effect, since both were
 * in the transaction.
 */
export async function claimInTransaction(
  ctx: Pick<Ctx, 'actor' | 'clock' | 'person' | 'sealer' | 'tenant'>,
  tx: Tx,
  request: IdempotentRequest,
): Promise<IdempotencyClaim> {
  const lock = lockNameOf(ctx, request.key)
  const { locked } = await tx.one(
    z.object({ locked: z.boolean() }),
    sql`select pg_try_advisory_xact_lock(hashtextextended(${lock}, 0)) as locked`,
  )
  const stored = await find(ctx, tx, request.key)
  if (stored !== undefined) return compareWithStored(ctx, stored, request)
  if (!locked) throw failPlatform('idempotency-in-progress')
  return { kind: 'first' }
}

/** Returns the name of the lock under which transactions claim a key. */
export function lockNameOf({ tenant }: Pick<Ctx, 'tenant'>, key: string): string {
  return lockNameOfText('idempotency', `${tenant.organisationId}:${tenant.environment}:${key}`)
}

/**
 * Stores the response, sealed, in the transaction of its effect; with a resource, the resource in place of its body. Throws
 * if a request with a lease claimed the key since: the transaction is rolled back, and of two requests with one key one takes effect.
 */
export async function storeInTransaction(
  ctx: Pick<Ctx, 'actor' | 'clock' | 'keptBytes' | 'sealer' | 'shareOwner' | 'tenant'>,
  tx: Tx,
  request: IdempotentRequest,
  {
    response,
    secret,
    resourceId = null,
  }: { readonly response: StoredResponse; readonly secret: boolean; readonly resourceId?: string | undefined | null },
): Promise<void> {
  const body = resourceId === null ? sealBody(ctx, request, response.body) : null
  const fingerprint = secret ? sealFingerprint(ctx, request) : request.fingerprint
  const stored = await tx.run(sql`
    insert into idempotency_keys (organisation_id, environment, key, fingerprint, api_key_id, state, status, headers, sealed_body, sealed, resource_id, created_at)
    values (${ctx.tenant.organisationId}, ${ctx.tenant.environment}, ${request.key}, ${fingerprint}, ${actorId(ctx.actor)}, 'done',
      ${response.status}, ${JSON.stringify(response.headers)}, ${body}, ${secret}, ${resourceId}, ${ctx.clock.now()})
    on conflict (organisation_id, environment, key) do nothing`)
  if (stored !== 1) throw failPlatform('idempotency-in-progress')
  tx.afterCommit(() => ctx.keptBytes.add(shareOwnerOf(ctx), bytesPerKey + (body?.byteLength ?? 0)))
}

/**
 * For handlers that wait for something outside: claims the key with a lease. The claim of a process that died can be taken over when the
 * lease ends; the handler's own intent row keeps the effect single.
 */
export async function claimWithLease(ctx: Ctx, request: IdempotentRequest, claim: string): Promise<IdempotencyClaim> {
  const now = ctx.clock.now()
  const until = instantOf(now.getTime() + runningMsMax)
  const { key, fingerprint } = request
  const isFirst = await claimUnused(ctx, { key, fingerprint, actorId: actorId(ctx.actor), claim, now, until })
  if (isFirst || (await takeOver(ctx, request, { claim, now, until }))) {
    ctx.keptBytes.add(shareOwnerOf(ctx), bytesPerKey)
    return { kind: 'first' }
  }
  const stored = await find(ctx, ctx.db, request.key)
  if (stored === undefined) return claimWithLease(ctx, request, claim)
  return compareWithStored(ctx, stored, request)
}

/** Takes over a key whose claim has ended without effect. Returns whether it did. */
async function takeOver(
  { db, tenant: { organisationId, environment }, actor }: Pick<Ctx, 'actor' | 'db' | 'tenant'>,
  { key, fingerprint }: IdempotentRequest,
  { claim, now, until }: { readonly claim: string; readonly now: Date; readonly until: Date },
): Promise<boolean> {
  const taken = await db.run(sql`
    update idempotency_keys set running_until = ${until}, claim = ${claim}, api_key_id = ${actorId(actor)}
    where organisation_id = ${organisationId} and environment = ${environment} and key = ${key}
      and state = 'running' and running_until < ${now} and fingerprint = ${fingerprint} and resource_id is null`)
  return taken === 1
}

/**
 * Claims the key, with a lease, for a body that is still to be read. A repeat must be read before it can be compared. One that comes while
 * the first is being read is refused for now; one that comes after the first's lease has ended takes over, and the first then stores nothing.
 */
export async function claimUnread(ctx: Ctx, request: IdempotentRequest, claim: string): Promise<'first' | 'repeat'> {
  try {
    return (await claimWithLease(ctx, request, claim)).kind === 'first' ? 'first' : 'repeat'
  } catch (error) {
    if (isProblem(error, 'idempotency-key-reused')) return 'repeat'
    throw error
  }
}

/** Response to a repeat whose body was read: the stored response, or the error that the key was used with another body. */
export async function respondToRepeat(
  ctx: Pick<Ctx, 'actor' | 'clock' | 'db' | 'person' | 'sealer' | 'tenant'>,
  request: IdempotentRequest,
): Promise<IdempotencyClaim> {
  const stored = await find(ctx, ctx.db, request.key)
  return stored === undefined ? { kind: 'first' } : compareWithStored(ctx, stored, request)
}

/**
 * Ties the key to the resource and to the content that was read, in the intent's own transaction. If another request has taken over the claim, throws
 * `idempotency-in-progress`: of two requests with one key, one takes effect.
 */
export function unreadHandle(
  ctx: Pick<Ctx, 'tenant'>,
  {
    key,
    claim,
    fingerprint,
  }: { readonly key: string; readonly claim: string; readonly fingerprint: (content: Uint8Array) => Uint8Array },
): IdempotencyHandle {
  const { organisationId, environment } = ctx.tenant
  return {
    key,
    commit: async (tx, resourceId, content) => {
      if (content === undefined) throw new Error('a streamed body must be tied with its content')
      const tied = await tx.run(sql`
        update idempotency_keys set resource_id = ${resourceId}, fingerprint = ${fingerprint(content)}
        where organisation_id = ${organisationId} and environment = ${environment} and key = ${key} and claim = ${claim} and state = 'running'`)
      if (tied !== 1) throw failPlatform('idempotency-in-progress')
    },
    commitAlone: () => Promise.reject(new Error('a streamed body must be tied with its content')),
  }
}

/** Releases a key that was tied to nothing, such as that of a request that was refused before its body was read. A repeat runs again. */
export async function releaseClaim(
  ctx: Pick<Ctx, 'db' | 'keptBytes' | 'shareOwner' | 'tenant'>,
  key: string,
  claim: string,
): Promise<void> {
  const { organisationId, environment } = ctx.tenant
  const released = await ctx.db.run(sql`
    delete from idempotency_keys where organisation_id = ${organisationId} and environment = ${environment} and key = ${key}
      and claim = ${claim} and resource_id is null`)
  ctx.keptBytes.add(shareOwnerOf(ctx), -bytesPerKey * released)
}

/**
 * Ties the key to the resource in the intent's own transaction. A claim whose lease ended and that a repeat took over ties nothing, and its
 * transaction is rolled back: of two requests with one key one takes effect, however slow the first one is.
 */
export function leaseHandle(
  { tenant }: Pick<Ctx, 'tenant'>,
  { key }: IdempotentRequest,
  claim: string,
): IdempotencyHandle {
  return {
    key,
    commit: async (tx, resourceId) => {
      if (!(await tie(tx, { tenant, key, claim, resourceId }))) throw failPlatform('idempotency-in-progress')
    },
    commitAlone: async (db, resourceId) => {
      if (!(await tieAlone({ db, tenant }, { tenant, key, claim, resourceId })))
        throw failPlatform('idempotency-in-progress')
    },
  }
}

/**
 * Ends a leased claim: the response is stored, or the key is released if the response is not to be stored. A key whose resource was
 * committed is never released: a response that is not stored leaves its repeat the resource's present state.
 */
export async function finishLease(
  ctx: Pick<Ctx, 'db' | 'keptBytes' | 'sealer' | 'shareOwner' | 'tenant'>,
  request: IdempotentRequest,
  claim: string,
  response: StoredResponse,
): Promise<void> {
  const { organisationId, environment } = ctx.tenant
  if (!isKeptUncommitted(response)) {
    const released = await ctx.db.run(sql`
      delete from idempotency_keys where organisation_id = ${organisationId} and environment = ${environment} and key = ${request.key}
        and claim = ${claim} and resource_id is null`)
    if (released === 1) ctx.keptBytes.add(shareOwnerOf(ctx), -bytesPerKey)
    if (released === 1 || !isKept(response.status) || isLarge(response.body)) return
  }
  const isSecret = request.isSecret === true
  const fingerprint = isSecret ? sealFingerprint(ctx, request) : null
  const body = sealBody(ctx, request, response.body)
  const { status, headers } = response
  const hasClaim = await storeEnded(ctx, { key: request.key, claim, status, headers, body, fingerprint, isSecret })
  if (hasClaim) ctx.keptBytes.add(shareOwnerOf(ctx), body.byteLength)
}

/** Deletes keys that are older than a day; run regularly by the work role. */
export function deleteExpiredIdempotencyKeys(sweep: Sweep, now: Date): Promise<number> {
  const where = sql`created_at < ${instantOf(now.getTime() - keptMs)}`
  return deleteExpired(sweep, { from: sql`idempotency_keys`, where, orderBy: sql`created_at` })
}

type SealCtx = Pick<Ctx, 'tenant' | 'sealer'>

/** Returns the body of a response as it is stored. Any response may have a capability: a settlement token, or a link to a file. */
export function sealBody(ctx: SealCtx, { key }: Pick<IdempotentRequest, 'key'>, body: Uint8Array): Uint8Array {
  return ctx.sealer.ofMany.seal(body, sealContext(ctx, key))
}

/** The fingerprint of a secret request as stored: a body of few digits could be guessed from its hash. */
function sealFingerprint(ctx: SealCtx, { key, fingerprint }: IdempotentRequest): Uint8Array {
  return ctx.sealer.seal(fingerprint, fingerprintContext(ctx, key))
}

/** Returns the stored body; undefined if there is none. */
function openBody(ctx: SealCtx, { body, sealed, sealedBody }: Stored, key: string): Uint8Array | undefined {
  if (sealedBody !== null) return ctx.sealer.ofMany.open(sealedBody, sealContext(ctx, key))
  if (body === null || !sealed) return body ?? undefined
  return ctx.sealer.open(body, sealContext(ctx, key))
}

/** Compares a request with what is stored under its key; throws if it must not have the response, or if there is none yet. */
export function compareWithStored(
  ctx: Pick<Ctx, 'tenant' | 'actor' | 'clock' | 'sealer' | 'person'>,
  stored: Stored,
  request: IdempotentRequest,
): IdempotencyClaim {
  if ((stored.sealed || request.isSecret === true) && stored.apiKeyId !== actorId(ctx.actor))
    throw failPlatform('idempotency-key-reused')
  const fingerprint = stored.sealed
    ? ctx.sealer.open(stored.fingerprint, fingerprintContext(ctx, request.key))
    : stored.fingerprint
  if (Buffer.compare(fingerprint, request.fingerprint) !== 0) throw failPlatform('idempotency-key-reused')
  const body = stored.state === 'done' ? openBody(ctx, stored, request.key) : undefined
  if (stored.status !== null && body !== undefined) {
    // The handler that required fresh authentication for some secrets does not run again.
    if (request.isSecret === true) requireFresh(ctx)
    return { kind: 'answered', response: { status: stored.status, headers: stored.headers ?? {}, body } }
  }
  if (stored.resourceId !== null) return { kind: 'unanswered', resourceId: stored.resourceId }
  throw failPlatform('idempotency-in-progress')
}

/** Returns the time before which a stored response has ended. */
export function oldestKept(ctx: Pick<Ctx, 'clock'>): Date {
  return instantOf(ctx.clock.now().getTime() - keptMs)
}

/** Whether a request with this key of the tenant is running or has a stored response. */
export async function isStored(ctx: Pick<Ctx, 'clock' | 'db' | 'tenant'>, key: string): Promise<boolean> {
  return (await find(ctx, ctx.db, key)) !== undefined
}

async function find(ctx: Pick<Ctx, 'clock' | 'tenant'>, db: Queryable, key: string): Promise<Stored | undefined> {
  const oldest = oldestKept(ctx)
  const stored = await db.maybeOne(
    Stored,
    sql`
    select ${storedColumns} from idempotency_keys
    where organisation_id = ${ctx.tenant.organisationId} and environment = ${ctx.tenant.environment} and key = ${key}`,
  )
  if (stored === undefined || stored.createdAt >= oldest) return stored
  await db.run(sql`
    delete from idempotency_keys
    where organisation_id = ${ctx.tenant.organisationId} and environment = ${ctx.tenant.environment} and key = ${key} and created_at < ${oldest}`)
  return undefined
}

function sealContext(ctx: Pick<Ctx, 'tenant'>, key: string): string {
  return `idempotency|${ctx.tenant.organisationId}|${ctx.tenant.environment}|${key}`
}

function fingerprintContext(ctx: Pick<Ctx, 'tenant'>, key: string): string {
  return `idempotency-fingerprint|${ctx.tenant.organisationId}|${ctx.tenant.environment}|${key}`
}
