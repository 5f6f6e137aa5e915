import type { Network } from '@purser/protocol'
import { z } from 'zod'
import type { Deps } from '../../src/modules.ts'
import type { Tenant } from '../../src/platform/ctx.ts'
import { type Db, sql } from '../../src/platform/db/db.ts'
import type { SimWallet } from './wallet-stage.ts'

/** Condition on `transfers`: the response to the caller reported the end already, so that no event does. */
const isReportedByAnswer = sql`(event_id is null and ended_at is not null
  and answered is not distinct from case status when 'confirmed' then 'confirmed' else 'reverted' end
  and not (route = 'partner-bridge' and left_at is not null))`

/** Condition on `transfers`: it is open, or its end is not reported. */
const isOpen = sql`(ended_at is null or (answered is not null and event_id is null and not ${isReportedByAnswer}))`

/** When something is to be done next, by the rows; null for never. */
export async function nextWalletWork(db: Db): Promise<Date | null> {
  const { at } = await db.one(
    z.object({ at: z.date().nullable() }),
    sql`select nullif(least((select min(check_at) from relays where check_at is not null), (select min(next_attempt_at) from relays where state = 'waiting'),
      (select min(due_at) from relay_turns), (select min(look_at) from transfers where ended_at is null), (select min(next_look_at) from withdrawals),
      (select min(aml_due_at) from wallet_transactions where aml_status = 'pending' and aml_due_at < 'infinity')), '-infinity') as at`,
  )
  return at
}

/** Returns the open work: nothing once everything up to a block has ended, is booked and is screened. */
export async function openWalletWork(db: Db, lastBlock: number): Promise<readonly string[]> {
  const rows = await db.many(
    z.object({ what: z.string() }),
    sql`select 'a transfer ' || id || coalesce(' ' || reason, '') as what from transfers where ${isOpen}
      union all select 'an approval of ' || id from transfers where revoke_at < now() + interval '2 minutes'
      union all select 'a withdrawal ' || id from withdrawals
        where status in ('pending_conversion', 'conversion_complete') and partner_state is distinct from 'in-review'
      union all select 'a sweep ' || sweep_id from sweep_transfers where status not in ('swept', 'failed')
      union all select 'a relay of ' || subject_id from relays where state in ('waiting', 'included')
      union all select 'a transaction ' || sender || ' ' || nonce || ' ' || status from chain_transactions where status <> 'final'
      union all select 'a booking ' || id || ' ' || status || ' ' || aml_status from wallet_transactions
        where status = 'pending' or (direction = 'in' and aml_status = 'pending' and status <> 'withdrawn' and kind = 'transfer')
      union all select 'the second reading of block ' || ${lastBlock}::integer where coalesce((select min(checked) from deposit_cursors), -1) < ${lastBlock}`,
  )
  return rows.map(({ what }) => what)
}

/** Returns the number of failed transfers whose approval is not revoked yet. */
export async function countToRevoke(db: Db): Promise<bigint> {
  const row = z.object({ count: z.bigint() })
  return (await db.one(row, sql`select count(*) as count from transfers where revoke_at is not null`)).count
}

/** The rows of open transfers and their signed payloads as JSON, for the report of a violation. */
export async function describeOpen(db: Db): Promise<string> {
  const rows = await db.many(
    z.object({ row: z.string() }),
    sql`select to_jsonb(t)::text as row from transfers t where ${isOpen}
      union all select to_jsonb(c)::text from chain_transactions c
        where exists (select 1 from transfers t where t.ended_at is null and to_jsonb(c)::text like '%' || t.id || '%')
      union all select to_jsonb(r)::text from relays r where exists (select 1 from transfers t where t.ended_at is null and t.id = r.subject_id)
      union all select to_jsonb(d)::text from deposit_cursors d`,
  )
  return rows.map(({ row }) => row).join('\n')
}

/** How often the end of each transfer was reported, by responses and events. */
export async function countReports(db: Db): Promise<ReadonlyMap<string | null, number>> {
  const reports = await db.many(
    z.object({ id: z.string().nullable(), count: z.bigint() }),
    sql`select id, count(*) as count from (
      select payload ->> 'transactionId' as id from events where type in ('transfer.completed', 'transfer.failed')
      union all select id from transfers where ${isReportedByAnswer}) as reports group by 1`,
  )
  return new Map(reports.map(({ id, count }) => [id, Number(count)]))
}

/** The service's balances of the token at each wallet: available plus on hold, and reserved. */
export async function fundsNow(
  deps: Deps,
  {
    tenant,
    network,
    wallets,
  }: { readonly tenant: Tenant; readonly network: Network; readonly wallets: readonly SimWallet[] },
): Promise<readonly { readonly rawAmount: bigint; readonly reserved: bigint }[]> {
  const [token] = network.tokens
  if (token === undefined) throw new Error('a network has a token')
  const places = wallets.map(({ id, address }) => ({ tenant, network, walletId: id, owner: address, coin: token }))
  const { spendable } = await deps.readFunds(network, places)
  return spendable.map(({ available, frozen, unscreened, reserved }) => ({
    rawAmount: available + frozen + unscreened,
    reserved,
  }))
}
