import { eventHash } from '@purser/protocol'
import { instantOf } from '../../platform/clock.ts'
import type { Ctx } from '../../platform/ctx.ts'
import type { Tx } from '../../platform/db/db.ts'
import { newId } from '../../platform/ids.ts'
import { fail } from './errors.ts'
import { type Grown, insertLink } from './event-store.ts'
import type { NewVaultEvent, VaultEvent } from './schema.ts'
import type { VaultRow } from './store.ts'
import { lockWritable, type VaultId } from './vault.ts'

/** Most events of one vault that callers may emit. What the service itself tells is bounded by what makes it tell. */
export const eventsPerVaultMax = 1_000_000

/** What happened, and what it adds to the vault's counts. */
export interface VaultHappening {
  readonly type: string
  readonly payload: Readonly<Record<string, unknown>>
  readonly grown?: Partial<Grown>
}

/** The vault's row as it stands after an event, for the next one of the same transaction, and the event as streams send it. */
export interface Appended {
  readonly vault: VaultRow
  readonly event: VaultEvent
}

type Acting = Pick<Ctx, 'tenant' | 'clock' | 'random' | 'vaultNews'>

/**
 * Appends an event to a vault whose row the caller holds, and that is not sealed: its place in the order, its link in the
 * chain of hashes and the vault's counts are given under that lock, so that live order and replay agree. A second event of
 * the same transaction must be given the row that the first one answered. Readers are told after the commit.
 */
export async function appendVaultEvent(
  tx: Tx,
  ctx: Acting,
  vault: VaultRow,
  happening: VaultHappening,
): Promise<Appended> {
  // Another process's clock may be ahead: an order that runs backwards in time would break replays from an instant.
  const at = instantOf(Math.max(ctx.clock.now().getTime(), vault.eventAt.getTime()))
  const { type, payload } = happening
  const event = { eventId: newId('evt', ctx), type, vaultId: vault.id, timestamp: at.toISOString(), payload }
  const sequence = vault.eventCount + 1
  const hash = eventHash(vault.eventHash, event)
  const grown = { documents: 0, files: 0, bytes: 0, ...happening.grown }
  await insertLink(tx, ctx.tenant, { event, at, sequence, hash, grown })
  tx.afterCommit(() => ctx.vaultNews?.(vault.id))
  return { vault: grownVault(vault, grown, { eventCount: sequence, eventHash: hash, eventAt: at }), event }
}

function grownVault(
  vault: VaultRow,
  grown: Grown,
  head: Pick<VaultRow, 'eventCount' | 'eventHash' | 'eventAt'>,
): VaultRow {
  return {
    ...vault,
    ...head,
    documentCount: vault.documentCount + grown.documents,
    fileCount: vault.fileCount + grown.files,
    bytes: vault.bytes + grown.bytes,
  }
}

/** Tells whoever watches the vault something of the caller's own. */
export function emitEvent(ctx: Ctx, vaultId: VaultId, request: NewVaultEvent): Promise<VaultEvent> {
  return ctx.db.tx(async (tx) => {
    const vault = await lockWritable(tx, ctx, vaultId)
    if (vault.eventCount >= eventsPerVaultMax) throw fail('events-per-vault-exceeded', { limit: eventsPerVaultMax })
    const { event } = await appendVaultEvent(tx, ctx, vault, { type: request.event, payload: request.payload ?? {} })
    return event
  })
}
