import { noEvents } from '@purser/protocol'
import type { Tx } from '../../platform/db/db.ts'
import { type Id, newId, type PaymentId } from '../../platform/ids.ts'
import { type Plan, planOf } from '../plans/index.ts'
import { appendVaultEvent } from './events.ts'
import { publishExpiring } from './lifetime.ts'
import type { Ctx } from './ports.ts'
import { refuseWithoutPayments, reserveQuota } from './quota.ts'
import type { NewVault, Vault } from './schema.ts'
import { insertVault, type VaultRow } from './store.ts'
import { lifetimeFrom } from './ttl.ts'
import { shownVault } from './vault.ts'

/** Creates a vault for the caller. Refused when the month's payments are used up, or above the plan's limit of active vaults. */
export function createVault(ctx: Ctx, request: NewVault): Promise<Vault> {
  return ctx.db.tx(async (tx) => {
    const plan = await planOf(tx, ctx.tenant.organisationId)
    await refuseWithoutPayments(tx, ctx, plan)
    return shownVault(ctx.tenant, await open(tx, ctx, plan, { ...blank, ...request, ttlSeconds: request.ttl }))
  })
}

export interface VaultOrder {
  readonly description?: string | undefined
  readonly metadata?: Readonly<Record<string, unknown>> | undefined
  /** The plan's default if omitted. */
  readonly ttlSeconds?: number | undefined
  readonly sessionId: Id<'sess'> | null
  readonly paymentId: PaymentId | null
}

const blank = { sessionId: null, paymentId: null }

/**
 * Creates a vault in the caller's transaction, for a payment that was already accepted: the month's count of payments does not
 * refuse it. It locks the counter of active vaults. The caller must not take further locks after this call, or it may deadlock
 * with a transaction that has locked a vault.
 */
export async function createVaultIn(tx: Tx, ctx: Ctx, order: VaultOrder): Promise<VaultRow> {
  return open(tx, ctx, await planOf(tx, ctx.tenant.organisationId), order)
}

async function open(tx: Tx, ctx: Ctx, plan: Plan, order: VaultOrder): Promise<VaultRow> {
  const lifetime = lifetimeFrom(ctx, plan, order.ttlSeconds)
  await reserveQuota(tx, ctx, plan, { kind: 'activeVaults', count: 1 })
  const made: VaultRow = { ...newRow(ctx, order), ...lifetime }
  await insertVault(tx, ctx.tenant, made)
  const payload = { description: made.description, expiresAt: lifetime.expiresAt.toISOString() }
  const { vault } = await appendVaultEvent(tx, ctx, made, { type: 'vault.created', payload })
  return lifetime.expiringDue === null ? publishExpiring(tx, ctx, vault) : vault
}

function newRow(ctx: Pick<Ctx, 'clock' | 'random'>, { description, metadata, sessionId, paymentId }: VaultOrder) {
  const createdAt = ctx.clock.now()
  return {
    id: newId('vlt', ctx),
    description: description ?? null,
    metadata: { ...metadata },
    sessionId,
    paymentId,
    summary: null,
    sealedAt: null,
    persistedAt: null,
    manifestHash: null,
    documentCount: 0,
    fileCount: 0,
    bytes: 0,
    eventCount: noEvents.count,
    eventHash: noEvents.hash,
    eventAt: createdAt,
    createdAt,
  }
}
