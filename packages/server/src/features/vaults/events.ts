import { eventHash } from '@purser/protocol'
import { instantOf } from '../../platform/clock.ts'
import type { Ctx } from '../../platform/ctx.ts'
import type { Tx } from '../../platform/db/db.ts'
import { newId } from '../../platform/ids.ts'
import { planOf } from '../plans/index.ts'
import { fail } from './errors.ts'
import { type Grown, insertLink } from './event-store.ts'
import { takeOrRefuse } from './quota.ts'
import type { NewVaultEvent, VaultEvent } from './schema.ts'
import type { VaultRow } from './store.ts'
import { lockWritable, type VaultId } from './vault.ts'

/** Most events of one vault, beyond which nothing more can be told of it but its end. */
export const eventsPerVaultMax = 1_000_000
/** What an emitted event counts for beside its name and payload: its row and its place in two indexes. */
export const eventRowBytes = 128

/** What happened, and what it adds to the vault's counts. */
export interface VaultHappening {
  readonly type: string
  readonly payload: Readonly<Record<string, unknown>>
  readonly grown?: Partial<Grown>
  /** Bytes that the event itself counts for, none where it is the service's own; the caller takes them from the plan's storage. */
  readonly size?: number
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
  const { type, payload, size = 0 } = happening
  const event = { eventId: newId('evt', ctx), type, vaultId: vault.id, timestamp: at.toISOString(), payload }
  const sequence = vault.eventCount + 1
  const hash = eventHash(vault.eventHash, event)
  const more = { documents: 0, files: 0, bytes: 0, ...happening.grown }
  const grown = { ...more, bytes: more.bytes + size }
  await insertLink(tx, ctx.tenant, { event, at, sequence, hash, size, grown })
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

/**
 * Tells whoever watches the vault something of the caller's own. It counts to storage, so that what is kept of it for ever has a
 * bound that somebody pays for.
 */
export function emitEvent(ctx: Ctx, vaultId: VaultId, request: NewVaultEvent): Promise<VaultEvent> {
  const { event: type, payload = {} } = request
  const size = eventBytes(type, payload)
  return ctx.db.tx(async (tx) => {
    const vault = await lockWritable(tx, ctx, vaultId)
    refuseFullStream(vault)
    const plan = await planOf(tx, ctx.tenant.organisationId)
    const { event } = await appendVaultEvent(tx, ctx, vault, { type, payload, size })
    await takeOrRefuse(tx, ctx, plan, { kind: 'storageBytes', count: size })
    return event
  })
}

/** Bytes that an emitted event counts for: name and payload in UTF-8, as they are stored, and what any row costs. */
export function eventBytes(type: string, payload: VaultHappening['payload']): number {
  return eventRowBytes + Buffer.byteLength(type) + Buffer.byteLength(JSON.stringify(payload))
}

/** Refuses what would have one more told of a full vault: the service's own events count for no storage, and this bounds them. */
export function refuseFullStream({ eventCount }: Pick<VaultRow, 'eventCount'>): void {
  if (eventCount >= eventsPerVaultMax) throw fail('events-per-vault-exceeded', { limit: eventsPerVaultMax })
}
