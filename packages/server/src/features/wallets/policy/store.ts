import { z } from 'zod'
import type { Tenant } from '../../../platform/ctx.ts'
import { type Queryable, sql, type Tx } from '../../../platform/db/db.ts'
import { id, type MasterWalletId } from '../../../platform/ids.ts'
import type { Usage } from './decide.ts'
import { PolicyDocument, type PolicyOperation, type PolicyWindow } from './document.ts'

const Atto = z.string().transform((text) => BigInt(text))

const PolicyRow = z.object({ document: PolicyDocument, updatedAt: z.date() })
export type PolicyRow = z.output<typeof PolicyRow>

const TenantRow = z.object({ organisationId: id('org'), environment: z.enum(['test', 'live']) })

/** Whose wallet it is, for the operator, who has no tenant. */
export function findTenantOfWallet(db: Queryable, walletId: MasterWalletId): Promise<Tenant | undefined> {
  return db.maybeOne(TenantRow, sql`select organisation_id, environment from master_wallets where id = ${walletId}`)
}

/**
 * Holds the wallet's row until the transaction ends, so that what is reserved and what its policy says is read and written by one
 * transaction at a time, in whatever process; false for a wallet that the tenant does not have.
 */
export function lockPolicy(tx: Tx, tenant: Tenant, walletId: MasterWalletId): Promise<boolean> {
  return lockPolicies(tx, tenant, [walletId])
}

/** The same for several, each named once; in one order, so that none wait crosswise. */
export async function lockPolicies(tx: Tx, tenant: Tenant, walletIds: readonly MasterWalletId[]): Promise<boolean> {
  const rows = await tx.many(
    z.object({ id: id('mwt') }),
    sql`
    select id from master_wallets
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = any(${walletIds}::text[])
    order by id for no key update`,
  )
  return rows.length === walletIds.length
}

export function findPolicy(db: Queryable, tenant: Tenant, walletId: MasterWalletId): Promise<PolicyRow | undefined> {
  return db.maybeOne(
    PolicyRow,
    sql`
    select document, updated_at from wallet_policies
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and master_wallet_id = ${walletId}`,
  )
}

/** The caller holds the wallet. */
export async function writePolicy(
  tx: Tx,
  tenant: Tenant,
  walletId: MasterWalletId,
  { document, updatedAt }: PolicyRow,
): Promise<void> {
  await tx.run(sql`
    insert into wallet_policies (master_wallet_id, organisation_id, environment, document, updated_at)
    values (${walletId}, ${tenant.organisationId}, ${tenant.environment}, ${JSON.stringify(document)}::jsonb, ${updatedAt})
    on conflict (master_wallet_id) do update set document = excluded.document, updated_at = excluded.updated_at`)
}

export async function removePolicy(tx: Tx, tenant: Tenant, walletId: MasterWalletId): Promise<void> {
  await tx.run(sql`
    delete from wallet_policies
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and master_wallet_id = ${walletId}`)
}

/** What left and is reserved of a token since each instant, over the wallet and all its children. */
export function sumUsage(
  db: Queryable,
  tenant: Tenant,
  counted: { readonly masterWalletId: MasterWalletId; readonly token: string },
  since: Readonly<Record<PolicyWindow, Date>>,
): Promise<Usage> {
  return db.one(
    z.object({ perHour: Atto, perDay: Atto, perMonth: Atto }),
    sql`
    select coalesce(sum(atto_amount) filter (where reserved_at > ${since.perHour}), 0)::text as per_hour,
      coalesce(sum(atto_amount) filter (where reserved_at > ${since.perDay}), 0)::text as per_day,
      coalesce(sum(atto_amount), 0)::text as per_month
    from policy_reservations
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment}
      and master_wallet_id = ${counted.masterWalletId} and token = ${counted.token} and reserved_at > ${since.perMonth}
      and released_at is null`,
  )
}

export interface NewReservation {
  readonly subjectId: string
  readonly masterWalletId: MasterWalletId
  readonly operation: PolicyOperation | 'gas'
  readonly token: string
  readonly attoAmount: bigint
  readonly reservedAt: Date
}

/** One that is there stays as it is. */
export async function insertReservations(tx: Tx, tenant: Tenant, rows: readonly NewReservation[]): Promise<void> {
  await tx.run(sql`
    insert into policy_reservations (subject_id, organisation_id, environment, master_wallet_id, operation, token, atto_amount, reserved_at)
    select subject_id, ${tenant.organisationId}, ${tenant.environment}, master_wallet_id, operation, token, atto_amount, reserved_at from unnest(
      ${rows.map(({ subjectId }) => subjectId)}::text[], ${rows.map(({ masterWalletId }) => masterWalletId)}::text[],
      ${rows.map(({ operation }) => operation)}::text[], ${rows.map(({ token }) => token)}::text[],
      ${rows.map(({ attoAmount }) => attoAmount)}::numeric[], ${rows.map(({ reservedAt }) => reservedAt.toISOString())}::timestamptz[]
    ) as given (subject_id, master_wallet_id, operation, token, atto_amount, reserved_at)
    on conflict (subject_id) do nothing`)
}

/** Those of these wallets that have a policy; the caller holds them. */
export async function listPolicied(
  tx: Tx,
  tenant: Tenant,
  walletIds: readonly MasterWalletId[],
): Promise<ReadonlySet<MasterWalletId>> {
  const rows = await tx.many(
    z.object({ id: id('mwt') }),
    sql`
    select master_wallet_id as id from wallet_policies
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and master_wallet_id = any(${walletIds}::text[])`,
  )
  return new Set(rows.map((row) => row.id))
}

/** Whether the movement holds a reservation or gave it back. */
export async function isReserved(tx: Tx, tenant: Tenant, subjectId: string): Promise<boolean> {
  const rows = await tx.many(
    z.object({ subjectId: z.string() }),
    sql`
    select subject_id from policy_reservations
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and subject_id = ${subjectId}`,
  )
  return rows.length === 1
}

/** Counts a movement no more; whoever comes second changes nothing. */
export async function markReleased(tx: Tx, tenant: Tenant, subjectId: string, now: Date): Promise<void> {
  await tx.run(sql`
    update policy_reservations set released_at = ${now}
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and subject_id = ${subjectId}
      and released_at is null`)
}

/** Corrects what subjects take, of whichever tenant: a subject's id is its own. */
export async function setAmounts(
  tx: Tx,
  amounts: readonly Pick<NewReservation, 'subjectId' | 'attoAmount'>[],
): Promise<void> {
  if (amounts.length === 0) return
  await tx.run(sql`
    update policy_reservations p set atto_amount = given.amount
    from unnest(${amounts.map(({ subjectId }) => subjectId)}::text[], ${amounts.map(({ attoAmount }) => attoAmount)}::numeric[]) as given (id, amount)
    where p.subject_id = given.id`)
}
