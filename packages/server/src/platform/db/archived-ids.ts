import { encodeTypeId, parseTypeId } from '@purser/protocol'
import { z } from 'zod'
import type { Tenant } from '../tenant.ts'
import { type Queryable, sql } from './db.ts'

/** Most ids in one row, which a look-up reads whole. */
const idsMax = 1_000
const idBytes = 16

/** A row whose id stays known after it was archived. */
export interface ArchivedRow {
  readonly id: string
  readonly organisationId: string
  readonly environment: string
}

/** Stores the ids of archived rows, given in the order of their ids. Ids of no known form are left out: no request names one. */
export async function insertArchivedIds(db: Queryable, partition: string, rows: readonly ArchivedRow[]): Promise<void> {
  const known = rows.filter(({ id }) => parseTypeId(id) !== undefined)
  for (const own of Map.groupBy(
    known,
    ({ organisationId, environment }) => `${organisationId} ${environment}`,
  ).values())
    for (let first = 0; first < own.length; first += idsMax) {
      const slice = own.slice(first, first + idsMax)
      const [head] = slice
      if (head === undefined) continue
      const ids = Buffer.concat(slice.map(({ id }) => parseTypeId(id)?.bytes ?? new Uint8Array()))
      await db.run(sql`
        insert into archived_ids (organisation_id, environment, first_id, ids, partition)
        values (${head.organisationId}, ${head.environment}, ${head.id}, ${ids}, ${partition})`)
    }
}

/**
 * Whether a row of the tenant with this id was archived. Reads two rows: the log ids of old payments are not quite in the order of the payments, so that two
 * rows of them may overlap.
 */
export async function isArchived(db: Queryable, tenant: Tenant, id: string): Promise<boolean> {
  const parsed = parseTypeId(id)
  if (parsed === undefined) return false
  const rows = await db.many(
    z.object({ ids: z.instanceof(Uint8Array) }),
    sql`
    select ids from archived_ids
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment}
      and first_id >= ${encodeTypeId(parsed.prefix, new Uint8Array(idBytes))} and first_id <= ${id}
    order by first_id desc limit 2`,
  )
  return rows.some(({ ids }) => includes(ids, parsed.bytes))
}

function includes(ids: Uint8Array, id: Uint8Array): boolean {
  for (let at = 0; at < ids.length; at += idBytes)
    if (Buffer.compare(ids.subarray(at, at + idBytes), id) === 0) return true
  return false
}
