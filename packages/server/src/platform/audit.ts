import { createHash } from 'node:crypto'
import { auditRecordBytes } from '@purser/protocol'
import { z } from 'zod'
import type { Clock } from './clock.ts'
import { type Queryable, type Sql, sql, type Tx } from './db/db.ts'
import type { LastWrite } from './db/last-writes.ts'
import { type ListedRows, listRows } from './db/listed-rows.ts'
import { inLockOrder } from './db/lock-order.ts'
import { newId, type OrganisationId, type RequestId } from './ids.ts'
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
  readonly requestId: RequestId
}

interface AuditCtx extends Auditing {
  readonly tenant: { readonly organisationId: AuditOwner; readonly environment: Environment | null }
}

const Head = z.object({ sequence: z.bigint(), hash: z.instanceof(Uint8Array) })
const genesis = new Uint8Array(32)

/**
 * Appends a record whose hash covers the record before it, so that removing, editing or reordering any of them is detected. It is written when the
 * transaction is about to commit: the organisation's head row is locked then, for records of one log are written one after another.
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

/** The head of a log is the last row that a transaction locks. Logs of several organisations are written in one order. */
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
  return acts.map(({ ctx, entry: { action, target = null, details: given = {} } }) => {
    const { environment } = ctx.tenant
    const details = boundedDetails(given)
    const made = { environment, action, actor: ctx.actor, requestId: ctx.requestId, target, details }
    const record: AuditRecord = { id: newId('aud', ctx), sequence: sequence + 1n, ...made, createdAt: ctx.clock.now() }
    const previousHash = hash
    sequence = record.sequence
    hash = auditHash(previousHash, organisationId, record)
    return { ...record, previousHash, hash }
  })
}

/** Most characters of a record's details as JSON: records are kept for years, and pages of them are read at once. */
const detailsCharactersMax = 8_192

/**
 * Returns the details of a record within the size limit. Members that do not fit are replaced by the SHA-256 of their JSON and their size. If
 * the names alone are too long, the whole object is replaced.
 */
function boundedDetails(details: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const whole = JSON.stringify(details)
  if (whole.length <= detailsCharactersMax) return details
  const entries = Object.entries(details)
  let left = detailsCharactersMax - entries.length * digestCharacters
  const bounded = Object.fromEntries(
    entries.map(([name, value]) => {
      const text = JSON.stringify(value ?? null)
      const isKept = text.length <= left
      if (isKept) left -= text.length
      return [name, isKept ? value : digestOf(text)]
    }),
  )
  return JSON.stringify(bounded).length <= detailsCharactersMax ? bounded : digestOf(whole)
}

function digestOf(text: string): { readonly sha256: string; readonly characters: number } {
  return { sha256: createHash('sha256').update(text).digest('hex'), characters: text.length }
}

/** Characters of a member's name and of what takes the place of a member that does not fit. */
const digestCharacters = 160

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

/** A row of the audit log. */
export const StoredRecord = z.object({
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
  | { readonly intact: true; readonly records: bigint; readonly archived?: bigint }
  | { readonly intact: false; readonly brokenAt: bigint }

/** A range of consecutive archived records, as the database still describes it. */
const ArchivedRun = z.object({
  firstSequence: z.bigint(),
  lastSequence: z.bigint(),
  previousHash: z.instanceof(Uint8Array),
  lastHash: z.instanceof(Uint8Array),
})

/** A position in the chain: behind that record. */
interface ChainPosition {
  readonly sequence: bigint
  readonly hash: Uint8Array
}

/**
 * Recomputes the chain of one log from its first record to the stored head, a page at a time. Archived records are skipped, if their first
 * `previousHash` is the hash of the record before them.
 */
export async function verifyAudit(db: Queryable, organisationId: AuditOwner): Promise<AuditVerdict> {
  const head = await db.maybeOne(
    Head,
    sql`select sequence, hash from audit_heads where organisation_id = ${organisationId}`,
  )
  const runs = await listArchivedRuns(db, organisationId)
  let position: ChainPosition = { sequence: 0n, hash: genesis }
  let archived = 0n
  const skipArchived = (): void => {
    for (let run = runs.get(position.sequence + 1n); run !== undefined; run = runs.get(position.sequence + 1n)) {
      if (!equal(run.previousHash, position.hash)) return
      archived += run.lastSequence - position.sequence
      position = { sequence: run.lastSequence, hash: run.lastHash }
    }
  }
  let limit = pageMax
  for (;;) {
    const { rows, isCut } = await listStored(db, organisationId, { after: position.sequence, limit })
    if (rows.length === 0) break
    limit = isCut ? rows.length : Math.min(2 * limit, pageMax)
    for (const { previousHash, hash, ...record } of rows) {
      if (record.sequence !== position.sequence + 1n) skipArchived()
      const isNext = record.sequence === position.sequence + 1n && equal(previousHash, position.hash)
      if (!isNext || !equal(hash, auditHash(position.hash, organisationId, record)))
        return { intact: false, brokenAt: position.sequence + 1n }
      position = { sequence: record.sequence, hash }
    }
  }
  skipArchived()
  const { sequence, hash } = position
  const complete =
    sequence === (head?.sequence ?? 0n) && (head === undefined || sequence === 0n || equal(head.hash, hash))
  if (!complete) return { intact: false, brokenAt: sequence + 1n }
  return { intact: true, records: sequence, ...(archived > 0n && { archived }) }
}

/** Returns the runs of a log's archived records, by the first sequence of each. They count once the files have the rows. */
async function listArchivedRuns(
  db: Queryable,
  organisationId: AuditOwner,
): Promise<Map<bigint, z.output<typeof ArchivedRun>>> {
  const runs = await db.many(
    ArchivedRun,
    sql`
    select first_sequence, last_sequence, previous_hash, last_hash from archived_audit_runs join archives using (partition)
    where organisation_id = ${organisationId} and state <> 'writing'`,
  )
  return new Map(runs.map((run) => [run.firstSequence, run]))
}

/**
 * Most records of one page of a check. After a page of which only some fitted, the next has about as many as fitted: PostgreSQL reads all rows of a
 * page to measure them.
 */
const pageMax = 500

function listStored(
  db: Queryable,
  organisationId: AuditOwner,
  { after, limit }: { readonly after: bigint; readonly limit: number },
): Promise<ListedRows<z.output<typeof StoredRecord>>> {
  return listRows(
    db,
    StoredRecord,
    limit,
    sql`
    select id, sequence, environment, action, actor, request_id, target, details, created_at, previous_hash, hash
    from audit_log where organisation_id = ${organisationId} and sequence > ${after} order by sequence`,
  )
}

function equal(left: Uint8Array, right: Uint8Array): boolean {
  return Buffer.compare(left, right) === 0
}
