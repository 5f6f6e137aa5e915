import { z } from 'zod'
import { sql, type Tx } from '../../../platform/db/db.ts'
import { type Id, id } from '../../../platform/ids.ts'

/** `undecided`: the row may be an open sweep that somebody else sent; the sweep's end decides. */
const verdicts = ['deposit', 'sweep', 'undecided'] as const
export type OwnDepositKind = (typeof verdicts)[number]

const VerdictRow = z.object({ id: id('wtx'), verdict: z.enum(verdicts) })

/**
 * Judges rows between managed wallets of one tenant, in a token of the wallet: transfers of sweeps are not deposits, because the tenant requested
 * them. A sweep is recognized by its transaction and not by its amount: any of the hashes under which it was sent, or the one that the chain shows.
 * One transaction may carry a sweep beside a transfer of the same amount; the first of their logs is the sweep's.
 */
export async function classifyOwnDeposits(
  tx: Tx,
  rows: readonly { readonly id: Id<'wtx'> }[],
): Promise<ReadonlyMap<string, OwnDepositKind>> {
  if (rows.length === 0) return new Map()
  const judged = await tx.many(
    VerdictRow,
    sql`
    select t.id, case when own.is_own and not exists (
        select from wallet_transactions e
        where e.network = t.network and e.tx_hash = t.tx_hash and e.organisation_id = t.organisation_id and e.environment = t.environment
          and e.token = t.token and e.from_address = t.from_address
          and e.to_address = t.to_address and e.raw_amount = t.raw_amount and e.direction = 'in' and e.status <> 'withdrawn'
          and e.log_index < t.log_index) then 'sweep'
      when own.is_open and not own.is_own then 'undecided' else 'deposit' end as verdict
    from wallet_transactions t join watched_addresses w on w.wallet_id = t.wallet_id and w.network = t.network
      cross join lateral (
        select coalesce(bool_or(coalesce(s.tx_hash = t.tx_hash, false) and s.status in ('sent', 'swept') or exists (
            select from transaction_attempts a join relays r on r.transaction_id = a.transaction_id
            where a.network = t.network and a.hash = t.tx_hash and r.purpose = 'wallets.sweeps'
              and r.subject_id = s.sweep_id || ' ' || s.child_address_id)
          or exists (
            select from transaction_attempts a
            where a.network = t.network and a.hash = t.tx_hash and a.transaction_id = s.chain_transaction_id)), false) as is_own,
          coalesce(bool_or(s.status in ('planned', 'signed', 'sent')), false) as is_open
        from sweep_transfers s
        where s.network = t.network and s.asset = t.token and s.from_address = t.from_address and s.to_address = t.to_address
          and s.raw_amount = t.raw_amount and s.created_at <= t.created_at) own
    where t.id = any(${rows.map((row) => row.id)}::text[]) and t.from_address <> t.to_address and t.token_symbol = any(w.tokens)`,
  )
  return new Map(judged.map((row) => [row.id, row.verdict]))
}
