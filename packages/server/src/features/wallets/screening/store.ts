import { z } from 'zod'
import type { Environment, Tenant } from '../../../platform/ctx.ts'
import { StoredHex } from '../../../platform/db/columns.ts'
import { type Queryable, type Sql, sql, type Tx } from '../../../platform/db/db.ts'
import { type ByoWalletId, type Id, id } from '../../../platform/ids.ts'
import { type DueChecks, listDueChecks } from '../../plans/index.ts'
import { AmlStatus } from '../schema.ts'

const DueWallet = z.object({
  id: id('byw'),
  organisationId: id('org'),
  environment: z.enum(['test', 'live']),
  address: StoredHex,
})
export type DueWallet = z.output<typeof DueWallet>

/** Wallets, as `listDueChecks` reads them: those of each environment wait for themselves. Migration 0389 indexes them. */
const toScreen = sql`(
  select id, organisation_id, environment as network, aml_due_at as check_at from byo_wallets where deleted_at is null)`

/** A condition: whether any wallet is due for screening. */
export function isAnyWalletDue(now: Date): Sql {
  const first = (environment: Environment): Sql => sql`(
    select check_at from ${toScreen} t where t.network = ${environment} and t.check_at <= ${now} order by t.check_at limit 1)`
  return sql`coalesce(${first('live')}, ${first('test')}) is not null`
}

/** Wallets of all organisations that are due for screening, in shares of their owners. The transaction must read in order. */
export async function listDueWallets(
  tx: Tx,
  environment: Environment,
  { now, ...due }: Pick<DueChecks, 'most' | 'cursors'> & { readonly now: Date },
): Promise<DueWallet[]> {
  const at = sql`${now}::timestamptz`
  const dueIds = await listDueChecks(tx, { table: toScreen, network: environment, now: at, ...due })
  if (dueIds.length === 0) return []
  return tx.many(
    DueWallet,
    sql`
    select id, organisation_id, environment, address from byo_wallets
    where id = any(${dueIds}::text[]) and deleted_at is null and aml_due_at <= ${now} order by array_position(${dueIds}::text[], id)`,
  )
}

/** Sets the next screening of a wallet that is due, after one that could not be stored. */
export async function postponeWallet(
  db: Queryable,
  { organisationId, environment, id: walletId }: DueWallet,
  until: Date,
): Promise<void> {
  await db.run(sql`
    update byo_wallets set aml_due_at = ${until}
    where organisation_id = ${organisationId} and environment = ${environment} and id = ${walletId} and aml_due_at < ${until}`)
}

/** Draws the next ticket. Call it before the sources are queried. */
export async function drawTicket(db: Queryable): Promise<bigint> {
  return (await db.one(z.object({ ticket: z.bigint() }), sql`select nextval('screening_tickets') as ticket`)).ticket
}

const ScreenedWallet = z.object({
  amlStatus: AmlStatus,
  amlTicket: z.bigint(),
  createdAt: z.date(),
  lastReportedAt: z.date().nullable(),
})
export type ScreenedWallet = z.output<typeof ScreenedWallet>

/** Locks the wallet's row until the transaction ends; undefined once it is deleted. `lastReportedAt`: when a screening last had a result. */
export function lockScreenedWallet(tx: Tx, tenant: Tenant, walletId: ByoWalletId): Promise<ScreenedWallet | undefined> {
  return tx.maybeOne(
    ScreenedWallet,
    sql`
    select aml_status, aml_ticket, created_at, aml_screened_at as last_reported_at from byo_wallets
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = ${walletId} and deleted_at is null
    for update`,
  )
}

/** `reportedAt` is null for a screening without a result, which keeps the time of the last one. */
export async function markWalletScreened(
  tx: Tx,
  tenant: Tenant,
  walletId: ByoWalletId,
  screened: { readonly amlStatus: string; readonly reportedAt: Date | null; readonly dueAt: Date },
): Promise<void> {
  await tx.run(sql`
    update byo_wallets set aml_status = ${screened.amlStatus}, aml_ticket = nextval('screening_tickets'),
      aml_screened_at = coalesce(${screened.reportedAt}, aml_screened_at), aml_due_at = ${screened.dueAt}
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = ${walletId}`)
}

export interface ScreeningRecord {
  readonly id: Id<'scr'>
  readonly tenant: Tenant
  /** A wallet or a wallet transaction. */
  readonly subjectId: string
  readonly address: string
  readonly result: string
  readonly reason: string
  readonly listVersion: bigint
  readonly listAsOf: Date
  readonly oracle: string
  readonly oracleNetworks: readonly string[]
  readonly screenedAt: Date
}

export async function insertScreenings(tx: Tx, records: readonly ScreeningRecord[]): Promise<void> {
  if (records.length === 0) return
  const each = <T>(read: (record: ScreeningRecord) => T): T[] => records.map(read)
  await tx.run(sql`
    insert into screenings (id, organisation_id, environment, subject_id, address, result, reason, list_version, list_as_of, oracle,
      oracle_networks, screened_at)
    select id, organisation_id, environment, subject_id, address, result, reason, list_version, list_as_of, oracle,
      array(select jsonb_array_elements_text(oracle_networks)), screened_at
    from unnest(${each(({ id }) => id)}::text[], ${each(({ tenant }) => tenant.organisationId)}::text[],
      ${each(({ tenant }) => tenant.environment)}::text[], ${each(({ subjectId }) => subjectId)}::text[], ${each(({ address }) => address)}::text[],
      ${each(({ result }) => result)}::text[], ${each(({ reason }) => reason)}::text[], ${each(({ listVersion }) => listVersion)}::bigint[],
      ${each(({ listAsOf }) => listAsOf)}::timestamptz[], ${each(({ oracle }) => oracle)}::text[],
      ${each(({ oracleNetworks }) => JSON.stringify(oracleNetworks))}::jsonb[], ${each(({ screenedAt }) => screenedAt)}::timestamptz[]
    ) as given (id, organisation_id, environment, subject_id, address, result, reason, list_version, list_as_of, oracle, oracle_networks, screened_at)`)
}

const LastScreening = z.object({ subjectId: z.string(), result: AmlStatus, reason: z.string(), screenedAt: z.date() })

/** The newest record of each wallet or wallet transaction that has one. */
export async function listLastScreenings(
  db: Queryable,
  subjects: readonly Pick<ScreeningRecord, 'tenant' | 'subjectId'>[],
): Promise<z.output<typeof LastScreening>[]> {
  if (subjects.length === 0) return []
  return db.many(
    LastScreening,
    sql`
    select given.subject_id, last.* from unnest(${subjects.map(({ subjectId }) => subjectId)}::text[],
      ${subjects.map(({ tenant }) => tenant.organisationId)}::text[], ${subjects.map(({ tenant }) => tenant.environment)}::text[]
    ) as given (subject_id, organisation_id, environment)
    cross join lateral (
      select result, reason, screened_at from screenings s
      where s.organisation_id = given.organisation_id and s.environment = given.environment and s.subject_id = given.subject_id
      order by s.id desc limit 1) as last`,
  )
}
