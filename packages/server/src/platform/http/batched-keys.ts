import { z } from 'zod'
import { actorId, type BatchedKey, type Ctx, shareOwnerOf } from '../ctx.ts'
import { breaksUnique, sql, type Tx } from '../db/db.ts'
import { failPlatform, Problem } from '../errors.ts'
import {
  compareWithStored,
  type IdempotencyRepeat,
  lockNameOf,
  oldestKept,
  Stored,
  sealBody,
  storedColumns,
} from './idempotency.ts'
import { bytesPerKey } from './kept-bytes.ts'

type KeyCtx = Pick<Ctx, 'tenant' | 'shareOwner' | 'actor' | 'clock' | 'sealer' | 'person' | 'keptBytes'>

/** A request of a batch, with its Idempotency-Key. */
export interface KeyedRequest {
  readonly ctx: KeyCtx
  readonly key: BatchedKey
}

/** Interrupts a handler whose request is a repeat. */
export class RespondedBefore extends Error {
  readonly claim: IdempotencyRepeat
  constructor(claim: IdempotencyRepeat) {
    super('the request is a repeat')
    this.claim = claim
  }
}

const LockedKey = z.object({ key: z.string(), locked: z.boolean() })
const StoredKey = Stored.extend({ key: z.string() })

/**
 * Claims the keys of a batch's requests, which are of one tenant, as `claimInTransaction` claims one, without waiting for any, by two statements that
 * are sent together. Returns what interrupts each request that does not run: its first response, or a refusal.
 */
export async function claimTogether(
  tx: Tx,
  requests: readonly KeyedRequest[],
): Promise<ReadonlyMap<BatchedKey, RespondedBefore | Problem>> {
  const [first] = requests
  if (first === undefined) return new Map()
  const keys = [...new Set(requests.map(({ key }) => key.key))]
  const [locks, rows] = await lockAndReadKeys(tx, first.ctx, keys)
  const free = new Set(locks.filter(({ locked }) => locked).map(({ key }) => key))
  const stored = new Map(rows.map((row) => [row.key, row]))
  const interruptions = new Map<BatchedKey, RespondedBefore | Problem>()
  for (const request of requests) {
    const interruption = interruptionOf(request, {
      stored: stored.get(request.key.key),
      isFree: free.delete(request.key.key),
    })
    if (interruption !== undefined) interruptions.set(request.key, interruption)
  }
  return interruptions
}

function lockAndReadKeys(tx: Tx, ctx: KeyedRequest['ctx'], keys: readonly string[]) {
  const { organisationId, environment } = ctx.tenant
  const oldest = oldestKept(ctx)
  // Sent together: the second statement, with a snapshot of its own, sees what earlier owners of the locks committed.
  return Promise.all([
    tx.many(
      LockedKey,
      sql`
      select key, pg_try_advisory_xact_lock(hashtextextended(lock_name, 0)) as locked
      from unnest(${keys}::text[], ${keys.map((key) => lockNameOf(ctx, key))}::text[]) as given (key, lock_name)`,
    ),
    tx.many(
      StoredKey,
      sql`
      with forgotten as (
        delete from idempotency_keys
        where organisation_id = ${organisationId} and environment = ${environment} and key = any(${keys}::text[]) and created_at < ${oldest}
      )
      select key, ${storedColumns} from idempotency_keys
      where organisation_id = ${organisationId} and environment = ${environment} and key = any(${keys}::text[]) and created_at >= ${oldest}`,
    ),
  ])
}

function interruptionOf(
  { ctx, key }: KeyedRequest,
  { stored, isFree }: { readonly stored: Stored | undefined; readonly isFree: boolean },
): RespondedBefore | Problem | undefined {
  if (stored === undefined) return isFree ? undefined : failPlatform('idempotency-in-progress')
  try {
    const claim = compareWithStored(ctx, stored, key)
    return claim.kind === 'first' ? undefined : new RespondedBefore(claim)
  } catch (error) {
    if (error instanceof Problem) return error
    throw error
  }
}

/**
 * Stores the responses to a batch's requests, whose keys it has claimed, in its transaction. Throws `isKeyTaken` if a request with a lease
 * claimed one of them since.
 */
export async function storeTogether(
  tx: Tx,
  requests: readonly (KeyedRequest & { readonly result: unknown })[],
): Promise<void> {
  const [first] = requests
  if (first === undefined) return
  const { organisationId, environment } = first.ctx.tenant
  const rows = requests.map(({ ctx, key, result }) => {
    const { body, ...stored } = key.storedAs(result)
    return { ctx, key, ...stored, body: body === null ? null : sealBody(ctx, key, body) }
  })
  const each = <T>(read: (row: (typeof rows)[number]) => T): T[] => rows.map(read)
  await tx.run(sql`
    insert into idempotency_keys (organisation_id, environment, key, fingerprint, api_key_id, state, status, headers, sealed_body, sealed, resource_id, created_at)
    select ${organisationId}, ${environment}, key, fingerprint, api_key_id, 'done', status, headers, body, false, resource_id, ${first.ctx.clock.now()}
    from unnest(
      ${each(({ key }) => key.key)}::text[], ${each(({ key }) => key.fingerprint)}::bytea[], ${each(({ ctx }) => actorId(ctx.actor))}::text[],
      ${each(({ status }) => status)}::int[], ${each(({ headers }) => JSON.stringify(headers))}::jsonb[], ${each(({ body }) => body)}::bytea[],
      ${each(({ resourceId }) => resourceId)}::text[]
    ) as given (key, fingerprint, api_key_id, status, headers, body, resource_id) order by key collate "C"`)
  tx.afterCommit(() => {
    for (const { ctx, body } of rows) ctx.keptBytes.add(shareOwnerOf(ctx), bytesPerKey + (body?.byteLength ?? 0))
  })
}

/** Whether a transaction failed, without effect, because another request claimed its key. */
export function isKeyTaken(error: unknown): boolean {
  return breaksUnique(error, 'idempotency_keys_pkey')
}
