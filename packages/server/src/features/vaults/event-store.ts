import type { Tenant } from '../../platform/ctx.ts'
import { sql, type Tx } from '../../platform/db/db.ts'
import type { VaultEvent } from './schema.ts'

/** The amounts that a write adds to the counters of its vault. */
export interface VaultGrowth {
  readonly documents: number
  readonly files: number
  readonly bytes: number
}

export interface NewLink {
  readonly event: VaultEvent
  readonly at: Date
  /** From 1; unique, because the caller has locked the vault's row. */
  readonly sequence: number
  /** Head of the event chain including this event. */
  readonly hash: string
  /** Storage that the event itself counts for, in bytes. */
  readonly size: number
  readonly growth: VaultGrowth
}

/** Writes an event and moves the vault's head to it, in one statement; the caller has locked the vault's row. */
export async function insertLink(tx: Tx, tenant: Tenant, link: NewLink): Promise<void> {
  const { event, at, sequence, hash, size, growth } = link
  const { organisationId, environment } = tenant
  await tx.run(sql`
    with written as (
      insert into vault_events (vault_id, sequence, id, organisation_id, environment, type, payload, size, created_at)
      values (${event.vaultId}, ${sequence}, ${event.eventId}, ${organisationId}, ${environment}, ${event.type},
        ${JSON.stringify(event.payload)}, ${size}, ${at})
    )
    update vaults set event_count = ${sequence}, event_hash = ${hash}, event_at = ${at},
      document_count = document_count + ${growth.documents}, file_count = file_count + ${growth.files}, bytes = bytes + ${growth.bytes}
    where organisation_id = ${organisationId} and environment = ${environment} and id = ${event.vaultId}`)
}
