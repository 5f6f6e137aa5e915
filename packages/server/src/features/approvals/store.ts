import { z } from 'zod'
import type { Tenant } from '../../platform/ctx.ts'
import { StoredBigInt } from '../../platform/db/columns.ts'
import { type Queryable, type Sql, sql, type Tx } from '../../platform/db/db.ts'
import { onAnyOf } from '../../platform/db/on-any-of.ts'
import { boundsOf, filtered, type ListedRows, listRows } from '../../platform/db/page.ts'
import { type AccountId, type ApiKeyId, type Id, id, type MasterWalletId } from '../../platform/ids.ts'
import { type DueCursors, listDueChecks } from '../plans/index.ts'
import { policyOperations } from '../wallets/index.ts'
import { type ApprovalKind, type ApprovalStatus, approvalKinds, approvalStatuses } from './schema.ts'

export type ApprovalId = Id<'apr'>

export const ApprovalRow = z.object({
  id: id('apr'),
  organisationId: id('org'),
  environment: z.enum(['test', 'live']),
  masterWalletId: id('mwt'),
  walletId: z.union([id('mwt'), id('cad')]),
  kind: z.enum(approvalKinds),
  operation: z.enum(policyOperations),
  subjectId: z.union([id('wtx'), id('wdr')]),
  paymentId: id('pay').nullable(),
  chain: z.string(),
  token: z.string(),
  decimals: z.number(),
  rawAmount: StoredBigInt,
  recipient: z.string(),
  toChain: z.string(),
  toToken: z.string(),
  approvalAbove: z.string(),
  note: z.string().nullable(),
  apiKeyId: id('key').nullable(),
  accountId: id('acc'),
  status: z.enum(approvalStatuses),
  createdAt: z.date(),
  expiresAt: z.date(),
  decidedAt: z.date().nullable(),
  decidedBy: z.string().nullable(),
  reason: z.string().nullable(),
  appliedAt: z.date().nullable(),
})
export type ApprovalRow = z.output<typeof ApprovalRow>

const columns = sql`a.id, a.organisation_id, a.environment, a.master_wallet_id, a.wallet_id, a.kind, a.operation, a.subject_id, a.payment_id,
  a.chain, a.token, a.decimals, a.raw_amount, a.recipient, a.to_chain, a.to_token, a.approval_above, a.note, a.api_key_id, a.account_id,
  a.status, a.created_at, a.expires_at, a.decided_at, a.decided_by, a.reason, a.applied_at`

export type NewApproval = Omit<
  ApprovalRow,
  'organisationId' | 'environment' | 'status' | 'decidedAt' | 'decidedBy' | 'reason' | 'appliedAt'
>

export async function insertApproval(tx: Tx, tenant: Tenant, row: NewApproval): Promise<void> {
  await tx.run(sql`
    insert into movement_approvals (id, organisation_id, environment, master_wallet_id, wallet_id, kind, operation, subject_id, payment_id,
      chain, token, decimals, raw_amount, recipient, to_chain, to_token, approval_above, note, api_key_id, account_id, created_at, expires_at)
    values (${row.id}, ${tenant.organisationId}, ${tenant.environment}, ${row.masterWalletId}, ${row.walletId}, ${row.kind},
      ${row.operation}, ${row.subjectId}, ${row.paymentId}, ${row.chain}, ${row.token}, ${row.decimals}, ${row.rawAmount.toString()},
      ${row.recipient}, ${row.toChain}, ${row.toToken}, ${row.approvalAbove}, ${row.note}, ${row.apiKeyId}, ${row.accountId},
      ${row.createdAt}, ${row.expiresAt})`)
}

/** Counts the open approvals of a wallet and its children. The caller has locked the wallet, so that the count stays true. */
export async function countOpen(tx: Tx, masterWalletId: MasterWalletId, now: Date): Promise<number> {
  const { count } = await tx.one(
    z.object({ count: z.bigint() }),
    sql`
    select count(*) as count from movement_approvals
    where master_wallet_id = ${masterWalletId} and status = 'waiting' and expires_at > ${now}`,
  )
  return Number(count)
}

/** An approval with the names of its requester. */
const NamedRow = ApprovalRow.extend({ apiKeyName: z.string().nullable(), email: z.string() })
export type NamedApproval = z.output<typeof NamedRow>

const named = sql`
  select ${columns}, k.name as api_key_name, r.email
  from movement_approvals a join accounts r on r.id = a.account_id left join api_keys k on k.id = a.api_key_id`

export function findApproval(
  db: Queryable,
  tenant: Tenant,
  approvalId: ApprovalId,
): Promise<NamedApproval | undefined> {
  return db.maybeOne(
    NamedRow,
    sql`${named} where a.organisation_id = ${tenant.organisationId} and a.environment = ${tenant.environment} and a.id = ${approvalId}`,
  )
}

/** Newest first, one more than the limit. */
export function listApprovals(
  db: Queryable,
  tenant: Tenant,
  page: {
    readonly limit: number
    readonly after: string | undefined
    readonly status: ApprovalStatus | undefined
    readonly walletId: string | undefined
  },
): Promise<ListedRows<NamedApproval>> {
  const { walletId, status, limit, after } = page
  const column = walletId?.startsWith('mwt_') ? sql`a.master_wallet_id` : sql`a.wallet_id`
  const filters = [[column, walletId] as const, [sql`a.status`, status] as const]
  const { where, order } = filtered(filters, sql`a.id`, boundsOf('apr', {}, after))
  return listRows(
    db,
    NamedRow,
    limit,
    sql`${named}
    where a.organisation_id = ${tenant.organisationId} and a.environment = ${tenant.environment} and ${where}
    order by ${order}`,
  )
}

const StateRow = ApprovalRow.pick({ id: true, status: true, expiresAt: true })
export type StateRow = z.output<typeof StateRow>

export function listStates(db: Queryable, tenant: Tenant, approvalIds: readonly string[]): Promise<StateRow[]> {
  return db.many(
    StateRow,
    sql`
    select id, status, expires_at from movement_approvals
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = any(${approvalIds}::text[])`,
  )
}

/** Locks the row, so that decisions are serialized. */
export function lockApproval(tx: Tx, tenant: Tenant, approvalId: ApprovalId): Promise<ApprovalRow | undefined> {
  return tx.maybeOne(
    ApprovalRow,
    sql`
    select ${columns} from movement_approvals a
    where a.organisation_id = ${tenant.organisationId} and a.environment = ${tenant.environment} and a.id = ${approvalId} for update`,
  )
}

export interface Decision {
  readonly status: Exclude<ApprovalStatus, 'waiting'>
  readonly at: Date
  readonly by: AccountId | ApiKeyId | null
  readonly reason: string | null
  /** Whether who approves became an owner or admin only after the request. */
  readonly isApproverNewer?: boolean
}

/** Stores a decision. The caller has locked the row; a decided one stays as it is. Returns whether it changed. */
export async function markDecided(
  tx: Tx,
  approvalId: ApprovalId,
  { status, at, by, reason }: Decision,
): Promise<boolean> {
  const changed = await tx.run(sql`
    update movement_approvals set status = ${status}, decided_at = ${at}, decided_by = ${by}, reason = ${reason}, apply_at = ${at}
    where id = ${approvalId} and status = 'waiting'`)
  return changed === 1
}

/** Locks approvals of any tenant that wait past their time, and that nobody else has locked. */
export function lockExpired(tx: Tx, now: Date, limit: number): Promise<ApprovalRow[]> {
  return tx.many(
    ApprovalRow,
    sql`
    select ${columns} from movement_approvals a where a.status = 'waiting' and a.expires_at <= ${now}
    order by a.expires_at limit ${limit} for update skip locked`,
  )
}

/** A condition: whether `lockExpired` would lock any. */
export function isAnyExpired(now: Date): Sql {
  return sql`(select expires_at from movement_approvals where status = 'waiting' and expires_at <= ${now} order by expires_at limit 1) is not null`
}

/** A condition: whether `takeToApply` would take any. */
export function isAnyToApply(kinds: readonly ApprovalKind[], now: Date): Sql {
  return onAnyOf(
    kinds,
    sql`select apply_at from movement_approvals
      where kind = n.network and status <> 'waiting' and applied_at is null and apply_at <= ${now} order by apply_at limit 1`,
  )
}

/** Most decisions of a kind that one take lists, and most of one organisation that it takes. */
const listedMax = 100
const perOrganisationMax = 8

/** Decided approvals whose decision is to be applied, as `listDueChecks` reads them. Migration 0247 indexes them by kind. */
const toApply = sql`(
  select id, organisation_id, kind as network, apply_at as check_at from movement_approvals where status <> 'waiting' and applied_at is null)`

/**
 * Decided approvals of any tenant whose decision is to be applied, of each kind in shares of their owners, at most eight of one; postponed until
 * `until`, so that one that fails does not delay the others. The transaction must read in order.
 */
export async function takeToApply(
  tx: Tx,
  due: {
    readonly kinds: readonly ApprovalKind[]
    readonly now: Date
    readonly until: Date
    readonly cursors: DueCursors
  },
): Promise<ApprovalRow[]> {
  const { kinds, now, until, cursors } = due
  const dueIds: string[] = []
  for (const network of kinds)
    dueIds.push(
      ...(await listDueChecks(tx, {
        table: toApply,
        network,
        now: sql`${now}::timestamptz`,
        most: listedMax,
        cursors,
      })),
    )
  if (dueIds.length === 0) return []
  const chosen = await firstOfEach(tx, dueIds)
  return tx.many(
    ApprovalRow,
    sql`
    update movement_approvals a set apply_at = ${until} where a.id = any(array(
      select id from movement_approvals
      where id = any(${chosen}::text[]) and status <> 'waiting' and applied_at is null and apply_at <= ${now} for update skip locked))
    returning ${columns}`,
  )
}

const OwnedRow = z.object({ id: z.string(), organisationId: z.string() })

/** The first approvals of each organisation, in the order of the list. */
async function firstOfEach(tx: Tx, dueIds: readonly string[]): Promise<string[]> {
  const rows = await tx.many(
    OwnedRow,
    sql`select id, organisation_id from movement_approvals where id = any(${dueIds}::text[]) order by array_position(${dueIds}::text[], id)`,
  )
  return [...Map.groupBy(rows, ({ organisationId }) => organisationId).values()].flatMap((own) =>
    own.slice(0, perOrganisationMax).map(({ id: approvalId }) => approvalId),
  )
}

/** Marks a decision as applied. Returns false if another transaction has applied it: the caller then changes nothing. */
export async function markApplied(tx: Tx, approvalId: ApprovalId, now: Date): Promise<boolean> {
  const changed = await tx.run(sql`
    update movement_approvals set applied_at = ${now}
    where id = ${approvalId} and status <> 'waiting' and applied_at is null`)
  return changed === 1
}

const AccountRow = z.object({ accountId: id('acc') })

/** The account that created an API key. */
export function findCreator(
  tx: Tx,
  tenant: Tenant,
  apiKeyId: ApiKeyId,
): Promise<z.output<typeof AccountRow> | undefined> {
  return tx.maybeOne(
    AccountRow,
    sql`select created_by as account_id from api_keys where organisation_id = ${tenant.organisationId} and id = ${apiKeyId}`,
  )
}

const Approvers = z.object({ count: z.bigint(), isNewer: z.boolean() })

/**
 * Counts the owners and admins of the organisation who have accepted their invitations, and says whether this account became one only after a time.
 */
export async function countApprovers(
  tx: Tx,
  tenant: Tenant,
  { accountId, after }: { readonly accountId: string; readonly after: Date },
): Promise<{ readonly count: number; readonly isNewer: boolean }> {
  const { count, ...one } = await tx.one(
    Approvers,
    sql`
    select count(*) as count,
      coalesce(bool_or(account_id = ${accountId} and greatest(accepted_at, role_since) > ${after}), false) as is_newer
    from members where organisation_id = ${tenant.organisationId} and role in ('owner', 'admin') and accepted_at is not null`,
  )
  return { ...one, count: Number(count) }
}
