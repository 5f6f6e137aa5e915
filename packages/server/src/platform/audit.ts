import { createHash } from 'node:crypto'
import { auditRecordBytes } from '@purser/protocol'
import { z } from 'zod'
import type { Clock } from './clock.ts'
import { type Queryable, type Sql, sql, type Tx } from './db/db.ts'
import type { LastWrite } from './db/last-writes.ts'
import { inLockOrder } from './db/lock-order.ts'
import { newId, type OrganisationId } from './ids.ts'
import type { Random } from './random.ts'
import type { Actor, Environment } from './tenant.ts'

/** One recorded change: the operation, its target, and details for a reader. Never a secret. */
export interface AuditEntry {
  readonly action: string
  readonly target?: string
  readonly details?: Readonly<Record<string, unknown>>
}

/** Log of operator actions on the whole deployment. No organisation has this id, so none ever reads it. */
export const operatorLog = 'operator'

/** Owner of a log: an organisation, or the operator. */
export type AuditOwner = OrganisationId | typeof operatorLog

/** The actor, the request and the time of a record. */
export interface Auditing {
  readonly clock: Clock
  readonly random: Random
  readonly actor: Actor
  readonly requestId: string
}

interface AuditCtx extends Auditing {
  readonly tenant: { readonly organisationId: AuditOwner; readonly environment: Environment | null }
}

const Head = z.object({ sequence: z.bigint(), hash: z.instanceof(Uint8Array) })
const genesis = new Uint8Array(32)

/**
 * Appends a record whose hash covers the record before it, so that removing, editing or reordering any of them is detected. It is written when the
 * transaction is about to commit: the organization's head row is locked then, for records of one log are written one after another.
 */
export function appendAudit(ctx: AuditCtx, tx: Tx, ...entries: readonly AuditEntry[]): void {
  tx.writeLast(
    auditRecords,
    entries.map((entry) => ({ ctx, entry })),
  )
}

/** An entry and its actor. */
interface AuditedAct {
  readonly ctx: AuditCtx
  readonly entry: AuditEntry
}

/** The head of a log is the last row that a transaction locks. Logs of several organizations are written in one order. */
const auditRecords: LastWrite<AuditedAct> = {
  rank: 2,
  async prepare(tx, acts) {
    const logs = Map.groupBy(acts, ({ ctx }) => ctx.tenant.organisationId)
    let prepared: Sql | undefined
    for (const [organisationId, own] of inLockOrder(logs)) {
      if (prepared !== undefined) await tx.run(prepared)
      prepared = await appendingTo(tx, organisationId as AuditOwner, own)
    }
    return prepared
  },
}

/** Locks the head of a log and returns the statement that appends to it: two statements, however many records there are. */
async function appendingTo(tx: Queryable, organisationId: AuditOwner, acts: readonly AuditedAct[]): Promise<Sql> {
  const head = await lockHead(tx, organisationId)
  const records = chained(head, organisationId, acts)
  const last = records.at(-1) ?? head
  const each = <T>(read: (record: (typeof records)[number]) => T): T[] => records.map(read)
  return sql`
    with appended as (
      insert into audit_log (organisation_id, sequence, id, environment, action, actor, request_id, target, details, created_at, previous_hash, hash)
      select ${organisationId}, sequence, id, environment, action, actor, request_id, target, details, created_at, previous_hash, hash from unnest(
        ${each(({ sequence }) => sequence)}::bigint[], ${each(({ id }) => id)}::text[], ${each(({ environment }) => environment)}::text[],
        ${each(({ action }) => action)}::text[], ${each(({ actor }) => JSON.stringify(actor))}::jsonb[], ${each(({ requestId }) => requestId)}::text[],
        ${each(({ target }) => target)}::text[], ${each(({ details }) => JSON.stringify(details))}::jsonb[],
        ${each(({ createdAt }) => createdAt.toISOString())}::timestamptz[], ${each(({ previousHash }) => previousHash)}::bytea[],
        ${each(({ hash }) => hash)}::bytea[]
      ) as made (sequence, id, environment, action, actor, request_id, target, details, created_at, previous_hash, hash)
    )
    update audit_heads set sequence = ${last.sequence}, hash = ${last.hash} where organisation_id = ${organisationId}`
}

/** Locks the head of a log until the transaction ends; the first record creates it. */
async function lockHead(tx: Queryable, organisationId: AuditOwner): Promise<z.output<typeof Head>> {
  const locked = sql`select sequence, hash from audit_heads where organisation_id = ${organisationId} for update`
  const head = await tx.maybeOne(Head, locked)
  if (head !== undefined) return head
  await tx.run(sql`
    insert into audit_heads (organisation_id, sequence, hash) values (${organisationId}, 0, ${genesis}) on conflict do nothing`)
  return tx.one(Head, locked)
}

function chained(head: z.output<typeof Head>, organisationId: AuditOwner, acts: readonly AuditedAct[]) {
  let { sequence } = head
  let hash: Uint8Array = head.hash
  return acts.map(({ ctx, entry: { action, target = null, details = {} } }) => {
    const { environment } = ctx.tenant
    const made = { environment, action, actor: ctx.actor, requestId: ctx.requestId, target, details }
    const record: AuditRecord = { id: newId('aud', ctx), sequence: sequence + 1n, ...made, createdAt: ctx.clock.now() }
    const previousHash = hash
    sequence = record.sequence
    hash = auditHash(previousHash, organisationId, record)
    return { ...record, previousHash, hash }
  })
}

/** Appends to the operator's log, in the transaction of a change that concerns the whole deployment. */
export function auditOperator({ clock, random, actor, requestId }: Auditing, tx: Tx, entry: AuditEntry): void {
  const tenant = { organisationId: operatorLog, environment: null } as const
  appendAudit({ clock, random, actor, requestId, tenant }, tx, entry)
}

interface AuditRecord {
  readonly id: string
  readonly sequence: bigint
  readonly environment: string | null
  readonly action: string
  readonly actor: unknown
  readonly requestId: string
  readonly target: string | null
  readonly details: Readonly<Record<string, unknown>>
  readonly createdAt: Date
}

/** SHA-256 over the previous hash and the record, as `auditRecordBytes` of the protocol puts it. */
function auditHash(previous: Uint8Array, organisationId: string, record: AuditRecord): Uint8Array {
  const { sequence, createdAt, actor, details } = record
  // What JSON leaves out, such as an undefined member, is not stored either.
  const asStored = AsStored.parse(JSON.parse(JSON.stringify({ actor, details })))
  const covered = { ...record, ...asStored, sequence: sequence.toString(), createdAt: createdAt.toISOString() }
  return createHash('sha256').update(previous).update(auditRecordBytes(organisationId, covered)).digest()
}

const AsStored = z.object({ actor: z.record(z.string(), z.unknown()), details: z.record(z.string(), z.unknown()) })

const StoredRecord = z.object({
  id: z.string(),
  sequence: z.bigint(),
  environment: z.string().nullable(),
  action: z.string(),
  actor: z.unknown(),
  requestId: z.string(),
  target: z.string().nullable(),
  details: z.record(z.string(), z.unknown()),
  createdAt: z.date(),
  previousHash: z.instanceof(Uint8Array),
  hash: z.instanceof(Uint8Array),
})

export type AuditVerdict =
  | { readonly intact: true; readonly records: bigint }
  | { readonly intact: false; readonly brokenAt: bigint }

/** Recomputes the chain of one log from its first record to the stored head, a page at a time. */
export async function verifyAudit(db: Queryable, organisationId: AuditOwner): Promise<AuditVerdict> {
  const head = await db.maybeOne(
    Head,
    sql`select sequence, hash from audit_heads where organisation_id = ${organisationId}`,
  )
  let previous: Uint8Array = genesis
  let sequence = 0n
  for (;;) {
    const page = await db.many(
      StoredRecord,
      sql`
      select id, sequence, environment, action, actor, request_id, target, details, created_at, previous_hash, hash
      from audit_log where organisation_id = ${organisationId} and sequence > ${sequence} order by sequence limit 500`,
    )
    if (page.length === 0) break
    for (const { previousHash, hash, ...record } of page) {
      const sound =
        record.sequence === sequence + 1n &&
        equal(previousHash, previous) &&
        equal(hash, auditHash(previous, organisationId, record))
      if (!sound) return { intact: false, brokenAt: sequence + 1n }
      previous = hash
      sequence = record.sequence
    }
  }
  const complete =
    sequence === (head?.sequence ?? 0n) && (head === undefined || sequence === 0n || equal(head.hash, previous))
  return complete ? { intact: true, records: sequence } : { intact: false, brokenAt: sequence + 1n }
}

function equal(left: Uint8Array, right: Uint8Array): boolean {
  return Buffer.compare(left, right) === 0
}
