import { z } from 'zod'
import type { Tenant } from '../../../platform/ctx.ts'
import { StoredBigInt } from '../../../platform/db/columns.ts'
import { type Queryable, type Sql, sql, type Tx } from '../../../platform/db/db.ts'
import { id, type MasterWalletId } from '../../../platform/ids.ts'
import { EffectivePolicy, type PolicyOperation } from './decide.ts'

const PolicyRow = z.object({ document: EffectivePolicy, updatedAt: z.date() })
export type PolicyRow = z.output<typeof PolicyRow>

/** A policy, and the database's time when it was read. Windows are computed from that time, because the clocks of processes differ. */
const PolicyAtRow = PolicyRow.extend({ readAt: z.date() })
export type PolicyAt = z.output<typeof PolicyAtRow>

const TenantRow = z.object({ organisationId: id('org'), environment: z.enum(['test', 'live']) })

/** The wallet's tenant, for the operator, who has none. */
export function findTenantOfWallet(db: Queryable, walletId: MasterWalletId): Promise<Tenant | undefined> {
  return db.maybeOne(TenantRow, sql`select organisation_id, environment from master_wallets where id = ${walletId}`)
}

/**
 * Locks the wallet's row until the transaction ends, so that its reservations and policy are read and written by one transaction at a time,
 * in any process; false if the tenant does not have the wallet.
 */
export function lockPolicy(tx: Tx, tenant: Tenant, walletId: MasterWalletId): Promise<boolean> {
  return lockPolicies(tx, tenant, [walletId])
}

/** Locks several wallets, each once, in a fixed order, so that none deadlock. */
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

export function findPolicy(db: Queryable, tenant: Tenant, walletId: MasterWalletId): Promise<PolicyAt | undefined> {
  return db.maybeOne(
    PolicyAtRow,
    sql`
    select document, updated_at, clock_timestamp() as read_at from wallet_policies
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and master_wallet_id = ${walletId}`,
  )
}

/** Writes the policy. The caller has locked the wallet. */
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

const GasRow = z.object({ token: z.string(), rawAmount: StoredBigInt })

/** The gas that is counted under this name, in 1e-18 of its coin. */
export function findGas(
  tx: Tx,
  tenant: Tenant,
  subjectId: string,
): Promise<{ readonly token: string; readonly rawAmount: bigint } | undefined> {
  return tx.maybeOne(
    GasRow,
    sql`
    select token, atto_amount::text as raw_amount from policy_reservations
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and subject_id = ${subjectId}`,
  )
}

/** Counts subjects as reserved now. The caller has locked the wallet. */
export async function markReserved(tx: Tx, tenant: Tenant, subjectIds: readonly string[]): Promise<void> {
  await tx.run(sql`
    update policy_reservations set reserved_at = clock_timestamp()
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and subject_id = any(${subjectIds}::text[])
      and released_at is null`)
}

const PolicyOfRow = PolicyAtRow.extend({ masterWalletId: id('mwt') })

export function listPolicies(
  db: Queryable,
  tenant: Tenant,
  walletIds: readonly MasterWalletId[],
): Promise<z.output<typeof PolicyOfRow>[]> {
  return db.many(
    PolicyOfRow,
    sql`
    select master_wallet_id, document, updated_at, clock_timestamp() as read_at from wallet_policies
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and master_wallet_id = any(${walletIds}::text[])`,
  )
}

export interface NewReservation {
  readonly subjectId: string
  readonly masterWalletId: MasterWalletId
  readonly operation: PolicyOperation | 'gas'
  readonly token: string
  readonly attoAmount: bigint
}

/** Inserts reservations as of now; existing ones are not changed. */
export async function insertReservations(tx: Tx, tenant: Tenant, rows: readonly NewReservation[]): Promise<void> {
  await tx.run(sql`
    insert into policy_reservations (subject_id, organisation_id, environment, master_wallet_id, operation, token, atto_amount, reserved_at)
    select subject_id, ${tenant.organisationId}, ${tenant.environment}, master_wallet_id, operation, token, atto_amount, clock_timestamp() from unnest(
      ${rows.map(({ subjectId }) => subjectId)}::text[], ${rows.map(({ masterWalletId }) => masterWalletId)}::text[],
      ${rows.map(({ operation }) => operation)}::text[], ${rows.map(({ token }) => token)}::text[],
      ${rows.map(({ attoAmount }) => attoAmount)}::numeric[]
    ) as given (subject_id, master_wallet_id, operation, token, atto_amount)
    on conflict (subject_id) do nothing`)
}

/** Those wallets that have a policy; the caller has locked them. */
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

/** Whether the movement has a reservation or released it. */
export async function isReserved(tx: Tx, tenant: Tenant, subjectId: string): Promise<boolean> {
  const rows = await tx.many(
    z.object({ subjectId: z.string() }),
    sql`
    select subject_id from policy_reservations
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and subject_id = ${subjectId}`,
  )
  return rows.length === 1
}

/** Releases a movement's reservation; a second call changes nothing. */
export async function markReleased(tx: Tx, tenant: Tenant, subjectId: string, now: Date): Promise<void> {
  await tx.run(sql`
    update policy_reservations set released_at = ${now}
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and subject_id = ${subjectId}
      and released_at is null`)
}

/** Sets the amounts of subjects, of any tenant, since a subject's id is unique. */
export async function setAmounts(
  tx: Tx,
  amounts: readonly Pick<NewReservation, 'subjectId' | 'attoAmount'>[],
): Promise<void> {
  if (amounts.length === 0) return
  const [ids, attoAmounts] = [amounts.map(({ subjectId }) => subjectId), amounts.map(({ attoAmount }) => attoAmount)]
  await tx.run(settingAmounts(sql`select * from unnest(${ids}::text[], ${attoAmounts}::numeric[])`))
}

/** The statement that sets the amounts of subjects, which `amounts` selects with them. */
function settingAmounts(amounts: Sql): Sql {
  return sql`update policy_reservations p set atto_amount = given.amount from (${amounts}) as given (id, amount) where p.subject_id = given.id`
}

/** The name under which a subject's gas is counted, separate from its amount, which is released if it fails. */
export function gasSubjectOf(subjectId: string): string {
  return `${subjectId} gas`
}

/** The name of the transaction that completes a subject's movement on another chain. */
export function claimOf(subjectId: string): string {
  return `${subjectId} claim`
}

/** The name under which the expected gas of the transaction is counted that completes a subject's movement on another chain. */
export function claimSubjectOf(subjectId: string): string {
  return gasSubjectOf(claimOf(subjectId))
}

/**
 * The statement that replaces the gas of subjects with its actual cost, for a `with` list. `costs` selects the subjects and their costs in
 * 1e-18 of the coin. Idempotent.
 */
export function settingActualGas(costs: Sql): Sql {
  return settingAmounts(
    sql`select c.subject_id || ${gasSubjectOf('')}::text, c.atto_amount from (${costs}) as c (subject_id, atto_amount)`,
  )
}
