import { eventHash } from '@purser/protocol'
import { instantOf } from '../../platform/clock.ts'
import type { Tx } from '../../platform/db/db.ts'
import { newId } from '../../platform/ids.ts'
import { planOf } from '../plans/index.ts'
import { fail } from './errors.ts'
import type { Ctx } from './ports.ts'
import { reserveQuota } from './quota.ts'
import type { NewVaultEvent, VaultEvent, VaultId } from './schema.ts'
import { insertLink, type NewLink, type VaultGrowth, type VaultRow } from './store.ts'
import { lockWritable } from './vault.ts'

/** Most events of one vault; above it only its end is reported. */
const eventsPerVaultMax = 1_000_000
/** Bytes that an emitted event counts for beside its name and payload: its row and its entries in two indexes. */
const eventRowBytes = 128

/** An event, and what it adds to the vault's counts. */
export interface NewVaultEventRow {
  readonly type: string
  readonly payload: Readonly<Record<string, unknown>>
  readonly growth?: Partial<VaultGrowth>
  /**
   * Bytes that the event itself counts for; omitted for the service's own events. The caller takes them from the plan's storage.
   */
  readonly size?: number
}

/** The vault's row after an event, for the next event of the same transaction, and the event as streams send it. */
export interface Appended {
  readonly vault: VaultRow
  readonly event: VaultEvent
}

type Acting = Pick<Ctx, 'tenant' | 'clock' | 'random' | 'vaultNews'>

/** The next event of a vault, as it is written. */
export interface Linked extends Appended {
  readonly link: NewLink
}

/**
 * Appends an event to an unsealed vault whose row the caller has locked. Its sequence number, its link in the chain of hashes and
 * the vault's counts are assigned under that lock, so that live order and replay agree. A second event of the same transaction
 * must use the row that the first one returned. Readers are notified after the commit.
 */
export async function appendVaultEvent(
  tx: Tx,
  ctx: Acting,
  vault: VaultRow,
  happening: NewVaultEventRow,
): Promise<Appended> {
  const { link, ...appended } = linkOf(ctx, vault, happening)
  await insertLink(tx, ctx.tenant, link)
  tx.afterCommit(() => ctx.vaultNews?.(vault.id))
  return appended
}

/** Returns the event that follows the last one of a vault whose row the caller has locked, and the vault's row after it. */
export function linkOf(ctx: Pick<Acting, 'clock' | 'random'>, vault: VaultRow, happening: NewVaultEventRow): Linked {
  // Another process's clock may be ahead: decreasing times would break replays from an instant.
  const at = instantOf(Math.max(ctx.clock.now().getTime(), vault.eventAt.getTime()))
  const { type, payload, size = 0 } = happening
  const event = { eventId: newId('evt', ctx), type, vaultId: vault.id, timestamp: at.toISOString(), payload }
  const sequence = vault.eventCount + 1
  const hash = eventHash(vault.eventHash, event)
  const more = { documents: 0, files: 0, bytes: 0, ...happening.growth }
  const growth = { ...more, bytes: more.bytes + size }
  return {
    link: { event, at, sequence, hash, size, growth },
    vault: grownVault(vault, growth, { eventCount: sequence, eventHash: hash, eventAt: at }),
    event,
  }
}

function grownVault(
  vault: VaultRow,
  growth: VaultGrowth,
  head: Pick<VaultRow, 'eventCount' | 'eventHash' | 'eventAt'>,
): VaultRow {
  return {
    ...vault,
    ...head,
    documentCount: vault.documentCount + growth.documents,
    fileCount: vault.fileCount + growth.files,
    bytes: vault.bytes + growth.bytes,
  }
}

/** Emits an event of the caller to the vault's stream. It counts to storage, because it is kept for as long as the vault. */
export function emitEvent(ctx: Ctx, vaultId: VaultId, request: NewVaultEvent): Promise<VaultEvent> {
  const { event: type, payload = {} } = request
  const size = eventBytes(type, payload)
  return ctx.db.tx(async (tx) => {
    const vault = await lockWritable(tx, ctx, vaultId)
    refuseFullStream(vault)
    const plan = await planOf(tx, ctx.tenant.organisationId)
    const { event } = await appendVaultEvent(tx, ctx, vault, { type, payload, size })
    await reserveQuota(tx, ctx, plan, { kind: 'storageBytes', count: size })
    return event
  })
}

/** Returns the bytes that an emitted event counts for: name and payload in UTF-8 as stored, and the fixed cost of a row. */
function eventBytes(type: string, payload: NewVaultEventRow['payload']): number {
  return eventRowBytes + Buffer.byteLength(type) + Buffer.byteLength(JSON.stringify(payload))
}

/** Refuses an event above the vault's limit. The service's own events count for no storage, so this bounds them. */
export function refuseFullStream({ eventCount }: Pick<VaultRow, 'eventCount'>): void {
  if (eventCount >= eventsPerVaultMax) throw fail('events-per-vault-exceeded', { limit: eventsPerVaultMax })
}
