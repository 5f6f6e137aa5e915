import { createHash } from 'node:crypto'
import { canonicalJson } from '@purser/protocol'
import { z } from 'zod'
import type { Clock } from './clock.ts'
import type { Actor, Environment } from './ctx.ts'
import { type Queryable, sql, type Tx } from './db/db.ts'
import { newId, type OrganisationId } from './ids.ts'
import type { Random } from './random.ts'

/** One change worth remembering: which operation, on what, and what a reader needs to understand it. Never a secret. */
export interface AuditEntry {
  readonly action: string
  readonly target?: string
  readonly details?: Readonly<Record<string, unknown>>
}

interface AuditCtx {
  readonly clock: Clock
  readonly random: Random
  readonly tenant: { readonly organisationId: OrganisationId; readonly environment: Environment | null }
  readonly actor: Actor
  readonly requestId: string
}

const Head = z.object({ sequence: z.bigint(), hash: z.instanceof(Uint8Array) })
const genesis = new Uint8Array(32)

/**
 * Appends a record whose hash covers the record before it, so that removing, editing or reordering any of them shows.
 * The organisation's head row is locked until the transaction ends: records of one organisation are written one by one.
 */
export async function appendAudit(ctx: AuditCtx, tx: Tx, entry: AuditEntry): Promise<void> {
  const { organisationId, environment } = ctx.tenant
  await tx.run(sql`
    insert into audit_heads (organisation_id, sequence, hash) values (${organisationId}, 0, ${genesis}) on conflict do nothing`)
  const head = await tx.one(
    Head,
    sql`select sequence, hash from audit_heads where organisation_id = ${organisationId} for update`,
  )
  const record: AuditRecord = {
    id: newId('aud', ctx),
    sequence: head.sequence + 1n,
    environment,
    action: entry.action,
    actor: ctx.actor,
    requestId: ctx.requestId,
    target: entry.target ?? null,
    details: entry.details ?? {},
    createdAt: ctx.clock.now(),
  }
  const hash = auditHash(head.hash, organisationId, record)
  await tx.run(sql`
    insert into audit_log (organisation_id, sequence, id, environment, action, actor, request_id, target, details, created_at, previous_hash, hash)
    values (${organisationId}, ${record.sequence}, ${record.id}, ${environment}, ${record.action}, ${JSON.stringify(record.actor)},
      ${record.requestId}, ${record.target}, ${JSON.stringify(record.details)}, ${record.createdAt}, ${head.hash}, ${hash})`)
  await tx.run(
    sql`update audit_heads set sequence = ${record.sequence}, hash = ${hash} where organisation_id = ${organisationId}`,
  )
}

export interface AuditRecord {
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

/** SHA-256 over the previous hash and the record as canonical JSON (RFC 8785). */
export function auditHash(previous: Uint8Array, organisationId: string, record: AuditRecord): Uint8Array {
  const text = canonicalJson(
    JSON.parse(
      JSON.stringify({
        ...record,
        organisationId,
        sequence: record.sequence.toString(),
        createdAt: record.createdAt.toISOString(),
      }),
    ),
  )
  return createHash('sha256').update(previous).update(text).digest()
}

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

/** Recomputes the chain of one organisation from its first record to the stored head, a page at a time. */
export async function verifyAudit(db: Queryable, organisationId: OrganisationId): Promise<AuditVerdict> {
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
