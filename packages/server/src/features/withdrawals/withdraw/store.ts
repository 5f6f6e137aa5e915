import { z } from 'zod'
import type { Payout, PayoutFailure } from '../../../partners/offramp/port.ts'
import type { Tenant } from '../../../platform/ctx.ts'
import { StoredBigInt, StoredHex } from '../../../platform/db/columns.ts'
import { breaksUnique, type Queryable, type Sql, sql, type Tx } from '../../../platform/db/db.ts'
import {
  boundsOf,
  filtered,
  type ListedRows,
  listRows,
  type Period,
  within,
  withMetadata,
} from '../../../platform/db/page.ts'
import { type EventId, type Id, id } from '../../../platform/ids.ts'
import type { MetadataMember } from '../../../platform/wire.ts'
import { ChainName } from '../../chains/index.ts'
import type { TransferId } from '../../transfers/index.ts'
import { Refund, WithdrawalStatus } from './schema.ts'

export type WithdrawalId = Id<'wdr'>

export const WithdrawalRow = z.object({
  id: id('wdr'),
  organisationId: id('org'),
  environment: z.enum(['test', 'live']),
  walletId: z.union([id('mwt'), id('cad')]),
  fromAddress: StoredHex,
  chain: ChainName,
  network: z.string(),
  token: z.string(),
  decimals: z.number(),
  rawAmount: StoredBigInt,
  bankAccountId: id('bac'),
  currency: z.enum(['EUR', 'GBP', 'USD']),
  reference: z.string().nullable(),
  metadata: z.record(z.string(), z.unknown()),
  status: WithdrawalStatus,
  reason: z.string().nullable(),
  partner: z.string(),
  partnerAccountId: z.string(),
  payoutId: z.string().nullable(),
  depositAddress: StoredHex.nullable(),
  refund: Refund.nullable(),
  feeAmount: z.string().nullable(),
  exchangeRate: z.string().nullable(),
  payoutAmount: z.string().nullable(),
  transferId: id('wtx').nullable(),
  createdAt: z.date(),
  completedAt: z.date().nullable(),
  failedAt: z.date().nullable(),
  approvalId: id('apr').nullable(),
  /** The time at which a withdrawal that waited for an approval was allowed to begin. */
  releasedAt: z.date().nullable(),
})
export type WithdrawalRow = z.output<typeof WithdrawalRow>

const columns = sql`id, organisation_id, environment, wallet_id, from_address, chain, network, token, decimals, raw_amount, bank_account_id,
  currency, reference, metadata, status, reason, partner, partner_account_id, payout_id, deposit_address, refund, fee_amount, exchange_rate,
  payout_amount, transfer_id, created_at, completed_at, failed_at, approval_id, released_at`

export type NewWithdrawalRow = Pick<
  WithdrawalRow,
  | 'id'
  | 'walletId'
  | 'fromAddress'
  | 'chain'
  | 'network'
  | 'token'
  | 'decimals'
  | 'rawAmount'
  | 'bankAccountId'
  | 'currency'
  | 'reference'
  | 'metadata'
  | 'partner'
  | 'partnerAccountId'
  | 'createdAt'
  | 'approvalId'
>

/** `nextCheckAt`: when another process continues it if this one dies; null for one that waits for an approval. */
export async function insertWithdrawal(
  tx: Tx,
  tenant: Tenant,
  row: NewWithdrawalRow,
  nextCheckAt: Date | null,
): Promise<void> {
  await tx.run(sql`
    insert into withdrawals (id, organisation_id, environment, wallet_id, from_address, chain, network, token, decimals, raw_amount,
      bank_account_id, currency, reference, metadata, status, partner, partner_account_id, created_at, next_look_at, approval_id)
    values (${row.id}, ${tenant.organisationId}, ${tenant.environment}, ${row.walletId}, ${row.fromAddress}, ${row.chain}, ${row.network},
      ${row.token}, ${row.decimals}, ${row.rawAmount.toString()}, ${row.bankAccountId}, ${row.currency}, ${row.reference},
      ${JSON.stringify(row.metadata)}::jsonb, 'pending_conversion', ${row.partner}, ${row.partnerAccountId}, ${row.createdAt}, ${nextCheckAt}, ${row.approvalId})`)
}

export function findWithdrawal(
  db: Queryable,
  tenant: Tenant,
  withdrawalId: WithdrawalId,
): Promise<WithdrawalRow | undefined> {
  return db.maybeOne(WithdrawalRow, selectOne(tenant, withdrawalId))
}

/** Locks the row, so that sending its tokens and changing its status are serialized. */
export function lockWithdrawal(tx: Tx, tenant: Tenant, withdrawalId: WithdrawalId): Promise<WithdrawalRow> {
  return tx.one(WithdrawalRow, sql`${selectOne(tenant, withdrawalId)} for update`)
}

function selectOne(tenant: Tenant, withdrawalId: WithdrawalId): Sql {
  return sql`select ${columns} from withdrawals
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = ${withdrawalId}`
}

/** Newest first, one more than the limit. */
export function listWithdrawals(
  db: Queryable,
  tenant: Tenant,
  filters: Period & {
    readonly status?: WithdrawalRow['status'] | undefined
    readonly metadata?: MetadataMember | undefined
  },
  page: { readonly limit: number; readonly after: string | undefined },
): Promise<ListedRows<WithdrawalRow>> {
  const marked = withMetadata(sql`withdrawals`, tenant, filters.metadata)
  const columnsOf = [...marked.filters, [sql`status`, filters.status] as const]
  const { where, order } = filtered(columnsOf, marked.id, boundsOf('wdr', filters, page.after))
  return listRows(
    db,
    WithdrawalRow,
    page.limit,
    sql`
    select ${columns} from ${marked.from}
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and ${where} and ${within(sql`created_at`, filters)}
    order by ${order}`,
  )
}

/** Stores the created payout; the first one stays if there are two calls. Returns false if the payout belongs to another withdrawal. */
export async function setPayout(
  db: Queryable,
  tenant: Tenant,
  withdrawalId: WithdrawalId,
  agreed: { readonly payoutId: string; readonly depositAddress: string; readonly partnerState: string },
): Promise<boolean> {
  try {
    await db.run(sql`
      update withdrawals set payout_id = ${agreed.payoutId}, deposit_address = ${agreed.depositAddress}, partner_state = ${agreed.partnerState}
      where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = ${withdrawalId} and payout_id is null`)
    return true
  } catch (error) {
    if (breaksUnique(error, 'withdrawals_partner_payout_id_key')) return false
    throw error
  }
}

/** Lets a withdrawal begin that waited for an approval. */
export async function markReleasedAt(tx: Tx, tenant: Tenant, withdrawalId: WithdrawalId, now: Date): Promise<void> {
  await tx.run(sql`
    update withdrawals set released_at = ${now}, next_look_at = ${now}
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = ${withdrawalId}`)
}

/** Assigns the transfer of its tokens. The caller has locked the row and checked that there is none. */
export async function setTransfer(
  tx: Tx,
  tenant: Tenant,
  withdrawalId: WithdrawalId,
  transferId: TransferId,
): Promise<void> {
  await tx.run(sql`
    update withdrawals set transfer_id = ${transferId}
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = ${withdrawalId} and transfer_id is null`)
}

/** Stores the amounts and the status that the partner reports; omitted values stay as they were. */
export async function setPartnerStatus(
  tx: Tx,
  tenant: Tenant,
  withdrawalId: WithdrawalId,
  payout: Payout,
): Promise<void> {
  const { receipt, partnerState } = payout
  await tx.run(sql`
    update withdrawals set partner_state = ${partnerState}, fee_amount = coalesce(${receipt?.feeAmount ?? null}, fee_amount),
      exchange_rate = coalesce(${receipt?.exchangeRate ?? null}, exchange_rate),
      payout_amount = coalesce(${receipt?.finalAmount ?? null}, payout_amount)
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = ${withdrawalId}`)
}

export async function markConverted(tx: Tx, tenant: Tenant, withdrawalId: WithdrawalId): Promise<void> {
  await tx.run(sql`
    update withdrawals set status = 'conversion_complete'
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = ${withdrawalId}`)
}

export async function markCompleted(
  tx: Tx,
  tenant: Tenant,
  withdrawalId: WithdrawalId,
  end: { readonly at: Date; readonly eventId: EventId },
): Promise<void> {
  await tx.run(sql`
    update withdrawals set status = 'completed', completed_at = ${end.at}, completed_event_id = ${end.eventId}, refund = null
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = ${withdrawalId}`)
}

/** Stores where the tokens of a failed one are now, as the partner reports it; its event stays valid. */
export async function setRefund(
  tx: Tx,
  tenant: Tenant,
  withdrawalId: WithdrawalId,
  refund: PayoutFailure['refund'],
): Promise<void> {
  await tx.run(sql`
    update withdrawals set refund = ${refund}
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = ${withdrawalId}`)
}

export async function markFailed(
  tx: Tx,
  tenant: Tenant,
  withdrawalId: WithdrawalId,
  end: {
    readonly at: Date
    readonly eventId: EventId
    readonly reason: string
    readonly refund: PayoutFailure['refund'] | null
  },
): Promise<void> {
  await tx.run(sql`
    update withdrawals set status = 'failed', failed_at = ${end.at}, failed_event_id = ${end.eventId}, reason = ${end.reason},
      refund = ${end.refund}
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = ${withdrawalId}`)
}

/** A condition: whether an ended withdrawal may still be returned, refunded or paid, however old it is. */
export const mayChange = sql`(status = 'completed' or (status = 'failed' and refund in ('expected', 'held')))`

/** Sets when a withdrawal is due next (null: not before a hint): at once if a hint came since its payout was read. */
export async function setNextPoll(
  db: Queryable,
  tenant: Tenant,
  withdrawalId: WithdrawalId,
  nextCheckAt: Date | null,
): Promise<void> {
  await db.run(sql`
    update withdrawals w set next_look_at = case when ${nextCheckAt}::timestamptz is not null or ${mayChange} then least(${nextCheckAt}::timestamptz,
      (select h.heard_at from payout_hints h where h.partner = w.partner and h.payout_id = w.payout_id)) end
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = ${withdrawalId}`)
}

/** Deletes a hint from before the payout was read; a newer one stays. */
export async function deleteHint(
  db: Queryable,
  { partner, payoutId }: { readonly partner: string; readonly payoutId: string },
  readAt: Date,
): Promise<void> {
  await db.run(sql`
    delete from payout_hints where partner = ${partner} and payout_id = ${payoutId} and heard_at <= ${readAt}`)
}
