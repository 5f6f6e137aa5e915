import { createHash } from 'node:crypto'
import { z } from 'zod'
import { instantOf } from '../clock.ts'
import type { Ctx, IdempotencyHandle } from '../ctx.ts'
import { type Queryable, sql, type Tx } from '../db/db.ts'
import { failPlatform, isProblem } from '../errors.ts'

/** How long the first request may run before another may take its key over (only for verbs that await something outside). */
const runningMsMax = 60_000
/** How long an answer is kept. */
export const keptMs = 24 * 60 * 60 * 1000

const Stored = z.object({
  fingerprint: z.instanceof(Uint8Array),
  apiKeyId: z.string(),
  state: z.enum(['running', 'done']),
  runningUntil: z.date().nullable(),
  resourceId: z.string().nullable(),
  status: z.number().nullable(),
  headers: z.record(z.string(), z.string()).nullable(),
  body: z.instanceof(Uint8Array).nullable(),
  sealed: z.boolean(),
  createdAt: z.date(),
})
type Stored = z.output<typeof Stored>

/** What a request with an Idempotency-Key is, compared byte by byte: method, path and the body as it was sent. */
export function fingerprintOf(method: string, url: string, body: Uint8Array): Uint8Array {
  return createHash('sha256').update(`${method} ${url}\n`).update(body).digest()
}

/**
 * The same for a body that is read as it comes: what it is is known only at its end, so until then the key is held under
 * this, which no whole request has.
 */
export function unreadFingerprintOf(method: string, url: string): Uint8Array {
  return createHash('sha256').update(`unread ${method} ${url}\n`).digest()
}

export interface IdempotentRequest {
  readonly key: string
  readonly fingerprint: Uint8Array
  /** The answer holds a secret: it is stored sealed, and only the API key that sent the first request gets it again. */
  readonly isSecret?: boolean
}

export interface StoredAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** The body's bytes; empty for none. */
  readonly body: Uint8Array
}

export type Claim =
  | { readonly kind: 'first' }
  | { readonly kind: 'answered'; readonly answer: StoredAnswer }
  | { readonly kind: 'unanswered'; readonly resourceId: string }

/** The answers that are kept: not those that a client should simply send again. */
export function isKept(status: number): boolean {
  return status !== 401 && status !== 429 && status < 500
}

/**
 * For verbs that commit in one transaction: takes the key for that transaction. A second request at the same time is
 * told so at once; a crash lets go of the key and leaves no effect, since both were in the transaction.
 */
export async function claimInTransaction(ctx: Ctx, tx: Tx, request: IdempotentRequest): Promise<Claim> {
  const lock = `idempotency:${ctx.tenant.organisationId}:${ctx.tenant.environment}:${request.key}`
  const { held } = await tx.one(
    z.object({ held: z.boolean() }),
    sql`select pg_try_advisory_xact_lock(hashtextextended(${lock}, 0)) as held`,
  )
  if (!held) throw failPlatform('idempotency-in-progress')
  const stored = await find(ctx, tx, request.key)
  return stored === undefined ? { kind: 'first' } : judge(ctx, stored, request)
}

/** Stores the answer in the transaction of its effect, sealed where it is secret. */
export async function storeInTransaction(
  ctx: Ctx,
  tx: Tx,
  request: IdempotentRequest,
  answer: StoredAnswer,
  secret: boolean,
): Promise<void> {
  const { body, fingerprint } = secret ? sealedOf(ctx, request, answer) : { body: answer.body, ...request }
  await tx.run(sql`
    insert into idempotency_keys (organisation_id, environment, key, fingerprint, api_key_id, state, status, headers, body, sealed, created_at)
    values (${ctx.tenant.organisationId}, ${ctx.tenant.environment}, ${request.key}, ${fingerprint}, ${apiKeyOf(ctx)}, 'done',
      ${answer.status}, ${JSON.stringify(answer.headers)}, ${body}, ${secret}, ${ctx.clock.now()})
    on conflict (organisation_id, environment, key) do nothing`)
}

/**
 * For verbs that await something outside: takes the key with a lease. A claim whose process died can be taken over
 * when the lease ends; the verb's own intent row keeps the effect single.
 */
export async function claimWithLease(ctx: Ctx, request: IdempotentRequest, claim: string): Promise<Claim> {
  const now = ctx.clock.now()
  const until = instantOf(now.getTime() + runningMsMax)
  const taken = await ctx.db.run(sql`
    insert into idempotency_keys (organisation_id, environment, key, fingerprint, api_key_id, state, running_until, claim, created_at)
    values (${ctx.tenant.organisationId}, ${ctx.tenant.environment}, ${request.key}, ${request.fingerprint}, ${apiKeyOf(ctx)}, 'running', ${until}, ${claim}, ${now})
    on conflict (organisation_id, environment, key) do update
      set running_until = excluded.running_until, claim = excluded.claim, api_key_id = excluded.api_key_id
      where idempotency_keys.state = 'running' and idempotency_keys.running_until < ${now}
        and idempotency_keys.fingerprint = excluded.fingerprint and idempotency_keys.resource_id is null`)
  if (taken === 1) return { kind: 'first' }
  const stored = await find(ctx, ctx.db, request.key)
  if (stored === undefined) return claimWithLease(ctx, request, claim)
  return judge(ctx, stored, request)
}

/**
 * Takes the key, with a lease, for a body that is still to be read. A repeat must read it before it can be judged; one that comes
 * while the first is read is told to wait, and one that comes when the first's lease has ended takes over: the first then ties nothing.
 */
export async function claimUnread(ctx: Ctx, request: IdempotentRequest, claim: string): Promise<'first' | 'repeat'> {
  try {
    return (await claimWithLease(ctx, request, claim)).kind === 'first' ? 'first' : 'repeat'
  } catch (error) {
    if (isProblem(error, 'idempotency-key-reused')) return 'repeat'
    throw error
  }
}

/** What a repeat is answered, now that its body is read: what was kept for it, or that the key was used with another. */
export async function judgeRepeat(ctx: Ctx, request: IdempotentRequest): Promise<Claim> {
  const stored = await find(ctx, ctx.db, request.key)
  return stored === undefined ? { kind: 'first' } : judge(ctx, stored, request)
}

/**
 * Ties the key to the resource and to the content that was read, in the intent's own transaction. A claim that another took over
 * ties nothing: of two requests with one key one takes effect.
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
      if (content === undefined) throw new Error('a body that is streamed is tied with what it held')
      const tied = await tx.run(sql`
        update idempotency_keys set resource_id = ${resourceId}, fingerprint = ${fingerprint(content)}
        where organisation_id = ${organisationId} and environment = ${environment} and key = ${key} and claim = ${claim} and state = 'running'`)
      if (tied !== 1) throw failPlatform('idempotency-in-progress')
    },
  }
}

/** Lets go of a key that was tied to nothing: what is refused before its body was read is judged anew when it is sent again. */
export async function releaseUnread(ctx: Ctx, key: string, claim: string): Promise<void> {
  const { organisationId, environment } = ctx.tenant
  await ctx.db.run(sql`
    delete from idempotency_keys where organisation_id = ${organisationId} and environment = ${environment} and key = ${key}
      and claim = ${claim} and resource_id is null`)
}

/**
 * Ties the key to the resource in the intent's own transaction. A claim whose lease ended and that a repeat took over ties nothing, and
 * its transaction is undone: of two requests with one key one takes effect, however slow the first one is.
 */
export function leaseHandle(ctx: Pick<Ctx, 'tenant'>, request: IdempotentRequest, claim: string): IdempotencyHandle {
  return {
    key: request.key,
    commit: async (tx, resourceId) => {
      const tied = await tx.run(sql`
        update idempotency_keys set resource_id = ${resourceId}
        where organisation_id = ${ctx.tenant.organisationId} and environment = ${ctx.tenant.environment} and key = ${request.key}
          and claim = ${claim} and state = 'running'`)
      if (tied !== 1) throw failPlatform('idempotency-in-progress')
    },
  }
}

/** Ends a leased claim: the answer is stored, or the key is free again when the answer is one that is not kept. */
export async function finishLease(
  ctx: Ctx,
  request: IdempotentRequest,
  claim: string,
  answer: StoredAnswer,
): Promise<void> {
  const { organisationId, environment } = ctx.tenant
  if (!isKept(answer.status)) {
    await ctx.db.run(sql`
      delete from idempotency_keys where organisation_id = ${organisationId} and environment = ${environment} and key = ${request.key}
        and claim = ${claim} and resource_id is null`)
    return
  }
  const isSecret = request.isSecret === true
  const { body, fingerprint } = isSecret ? sealedOf(ctx, request, answer) : { body: answer.body, fingerprint: null }
  await ctx.db.run(sql`
    update idempotency_keys set state = 'done', status = ${answer.status}, headers = ${JSON.stringify(answer.headers)}, body = ${body},
      sealed = ${isSecret}, fingerprint = coalesce(${fingerprint}::bytea, fingerprint)
    where organisation_id = ${organisationId} and environment = ${environment} and key = ${request.key} and claim = ${claim}`)
}

/** Forgets what is older than a day; run now and then by the work role. */
export function sweepIdempotencyKeys(db: Queryable, now: Date): Promise<number> {
  return db.run(sql`delete from idempotency_keys where created_at < ${instantOf(now.getTime() - keptMs)}`)
}

/** A secret answer as it is stored. The fingerprint is sealed too: a body of few digits could be guessed from it. */
function sealedOf(ctx: Ctx, { key, fingerprint }: IdempotentRequest, { body }: StoredAnswer) {
  return {
    body: ctx.sealer.seal(body, sealContext(ctx, key)),
    fingerprint: ctx.sealer.seal(fingerprint, fingerprintContext(ctx, key)),
  }
}

function judge(ctx: Ctx, stored: Stored, request: IdempotentRequest): Claim {
  if ((stored.sealed || request.isSecret === true) && stored.apiKeyId !== apiKeyOf(ctx))
    throw failPlatform('idempotency-key-reused')
  const fingerprint = stored.sealed
    ? ctx.sealer.open(stored.fingerprint, fingerprintContext(ctx, request.key))
    : stored.fingerprint
  if (Buffer.compare(fingerprint, request.fingerprint) !== 0) throw failPlatform('idempotency-key-reused')
  if (stored.state === 'done' && stored.status !== null && stored.body !== null) {
    const body = stored.sealed ? ctx.sealer.open(stored.body, sealContext(ctx, request.key)) : stored.body
    return { kind: 'answered', answer: { status: stored.status, headers: stored.headers ?? {}, body } }
  }
  if (stored.resourceId !== null) return { kind: 'unanswered', resourceId: stored.resourceId }
  throw failPlatform('idempotency-in-progress')
}

async function find(ctx: Ctx, db: Queryable, key: string): Promise<Stored | undefined> {
  const oldest = instantOf(ctx.clock.now().getTime() - keptMs)
  const stored = await db.maybeOne(
    Stored,
    sql`
    select fingerprint, api_key_id, state, running_until, resource_id, status, headers, body, sealed, created_at from idempotency_keys
    where organisation_id = ${ctx.tenant.organisationId} and environment = ${ctx.tenant.environment} and key = ${key}`,
  )
  if (stored === undefined || stored.createdAt >= oldest) return stored
  await db.run(sql`
    delete from idempotency_keys
    where organisation_id = ${ctx.tenant.organisationId} and environment = ${ctx.tenant.environment} and key = ${key} and created_at < ${oldest}`)
  return undefined
}

function apiKeyOf(ctx: Ctx): string {
  return ctx.actor.kind === 'api-key' ? ctx.actor.apiKeyId : ctx.actor.kind
}

function sealContext(ctx: Ctx, key: string): string {
  return `idempotency|${ctx.tenant.organisationId}|${ctx.tenant.environment}|${key}`
}

function fingerprintContext(ctx: Ctx, key: string): string {
  return `idempotency-fingerprint|${ctx.tenant.organisationId}|${ctx.tenant.environment}|${key}`
}
