import type { Address, NetworkName } from '@purser/protocol'
import { z } from 'zod'
import type { Tenant } from '../../../platform/ctx.ts'
import { type Queryable, sql, type Tx } from '../../../platform/db/db.ts'
import { type Id, id } from '../../../platform/ids.ts'
import { AmlStatus } from '../schema.ts'

const Raw = z.string().transform((text) => BigInt(text))

const DueDeposit = z.object({
  id: id('wtx'),
  organisationId: id('org'),
  environment: z.enum(['test', 'live']),
  walletId: z.string(),
  from: z.templateLiteral(['0x', z.string()]),
})
export type DueDeposit = z.output<typeof DueDeposit>

/** Deposits whose sender is to be screened now, of all organisations; those that wait longest first. */
export function listDueDeposits(db: Queryable, now: Date, most: number): Promise<DueDeposit[]> {
  return db.many(
    DueDeposit,
    sql`
    select id, organisation_id, environment, wallet_id, from_address as from from wallet_transactions
    where direction = 'in' and status <> 'withdrawn' and aml_due_at < 'infinity' and aml_due_at <= ${now}
    order by aml_due_at limit ${most}`,
  )
}

const ScreenedDeposit = z.object({ amlStatus: AmlStatus, amlTicket: z.bigint(), createdAt: z.date() })

/** Holds the deposit's row until the transaction ends. */
export function lockScreenedDeposit(
  tx: Tx,
  tenant: Tenant,
  depositId: Id<'wtx'>,
): Promise<z.output<typeof ScreenedDeposit> | undefined> {
  return tx.maybeOne(
    ScreenedDeposit,
    sql`
    select aml_status, aml_ticket, created_at from wallet_transactions
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = ${depositId} for update`,
  )
}

/** Writes the status, and freezes the whole amount where `freezes` says so; `dueAt` null is never, until a new list concerns the sender. */
export async function markDepositScreened(
  tx: Tx,
  tenant: Tenant,
  depositId: Id<'wtx'>,
  screened: { readonly amlStatus: string; readonly freezes: boolean; readonly dueAt: Date | null },
): Promise<void> {
  await tx.run(sql`
    update wallet_transactions set aml_status = ${screened.amlStatus}, aml_ticket = nextval('screening_tickets'),
      frozen_raw_amount = case when ${screened.freezes} then raw_amount else 0 end,
      aml_due_at = coalesce(${screened.dueAt}::timestamptz, 'infinity')
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = ${depositId}`)
}

/** Makes deposits from these senders, given in lower case, due now: those not clear, and clear ones that came after `since`. */
export async function markSendersDue(
  tx: Tx,
  senders: readonly string[],
  { now, since }: { readonly now: Date; readonly since: Date },
): Promise<void> {
  await tx.run(sql`
    update wallet_transactions set aml_due_at = ${now}
    where direction = 'in' and lower(from_address) = any(${senders}::text[]) and (aml_status <> 'clear' or created_at >= ${since})`)
}

/** Makes every deposit due now of whose sender nobody could say anything. */
export async function markPendingDepositsDue(tx: Tx, now: Date): Promise<void> {
  await tx.run(sql`
    update wallet_transactions set aml_due_at = ${now}
    where direction = 'in' and aml_status = 'pending' and aml_due_at > ${now}`)
}

const HeldAmount = z.object({ frozen: Raw, unscreened: Raw })
/** What of a token may not leave a managed wallet, in its smallest unit: what is frozen, and what came from senders nobody has judged yet. */
export type HeldAmount = z.output<typeof HeldAmount>

/** A managed wallet's token, and `unscreenedSince`; where that is undefined nothing waits. */
export interface HeldQuestion {
  readonly tenant: Tenant
  readonly walletId: string
  readonly network: NetworkName
  readonly token: Address
  readonly since: Date | undefined
}

/**
 * How much of managed wallets' tokens is held, in the order of the questions: what may move is the balance less all of it, never below zero.
 * Asked again in the transaction that writes the intent to move it, after the wallet is locked: a deposit may be seen while the wallet is
 * weighed.
 */
export function heldAmounts(db: Queryable, questions: readonly HeldQuestion[]): Promise<HeldAmount[]> {
  const each = <T>(read: (question: HeldQuestion) => T): T[] => questions.map(read)
  const place = sql`w.organisation_id = q.organisation_id and w.environment = q.environment and w.wallet_id = q.wallet_id
        and w.network = q.network and lower(w.token) = q.token and w.direction = 'in' and w.status <> 'withdrawn'`
  return db.many(
    HeldAmount,
    sql`
    select
      (select coalesce(sum(frozen_raw_amount), 0)::text from wallet_transactions w where ${place} and frozen_raw_amount > 0) as frozen,
      (select coalesce(sum(raw_amount), 0)::text from wallet_transactions w where ${place} and aml_status = 'pending'
        and created_at > coalesce(q.since, 'infinity')) as unscreened
    from unnest(
      ${each(({ tenant }) => tenant.organisationId)}::text[], ${each(({ tenant }) => tenant.environment)}::text[],
      ${each(({ walletId }) => walletId)}::text[], ${each(({ network }) => network)}::text[],
      ${each(({ token }) => token.toLowerCase())}::text[], ${each(({ since }) => since?.toISOString() ?? null)}::timestamptz[]
    ) with ordinality as q (organisation_id, environment, wallet_id, network, token, since, place) order by q.place`,
  )
}
