import { z } from 'zod'
import { type Queryable, sql } from '../../platform/db/db.ts'
import { sharesOfStep } from './facts-store.ts'
import type { Prices } from './weigh.ts'

const Raw = z.string().transform((text) => BigInt(text))

/** A wallet, of what token, and from where on. */
export interface DrawnQuestion {
  readonly network: string
  readonly source: string
  readonly master: string
  readonly token: string
  /** The nonces that the wallet and its master would have given next, and the number of the wallet's newest authorisation. */
  readonly since: { readonly source: bigint; readonly master: bigint; readonly authorised: bigint }
  readonly prices: Prices
}

const Drawn = z.object({ token: Raw, source: Raw, master: Raw })
/** What others drew: of the token out of the wallet, and in wei out of the wallet and its master. */
export type Drawn = z.output<typeof Drawn>

/**
 * What transfers that took their first nonce from these on, or an authorisation after that one, draw, whatever became of them since, in the
 * order of the questions: of a token out of the wallet, and in wei out of the wallet and its master, values, gas and data fees at these
 * prices. What a master sends a child for its gas is the child's. What is paid beside (a claim, a refill, an approval taken back) is of its own
 * nonce, whenever its transfer was made.
 */
export function sumDrawnSince(db: Queryable, questions: readonly DrawnQuestion[]): Promise<Drawn[]> {
  const each = <T>(read: (question: DrawnQuestion) => T): T[] => questions.map(read)
  const cost = sql`s.value + s.gas_limit * q.max_fee + q.l1_fee * ${sharesOfStep}`
  return db.many(
    Drawn,
    sql`
    select sums.token, sums.source, sums.master
    from unnest(
      ${each(({ network }) => network)}::text[], ${each(({ source }) => source)}::text[], ${each(({ master }) => master)}::text[],
      ${each(({ token }) => token)}::text[], ${each(({ since }) => since.source)}::bigint[], ${each(({ since }) => since.master)}::bigint[],
      ${each(({ since }) => since.authorised)}::bigint[], ${each(({ prices }) => prices.maxFee)}::numeric[],
      ${each(({ prices }) => prices.l1Fee)}::numeric[]
    ) with ordinality as q (network, source, master, token, source_nonce, master_nonce, authorised, max_fee, l1_fee, place)
    cross join lateral (
      with made as (
        select f.transfer_id as id from chain_transactions c join transfer_steps f on f.transaction_id = c.id and f.position = 0
        where c.network = q.network and c.sender = q.source and c.nonce >= q.source_nonce
        union
        select f.transfer_id from chain_transactions c join transfer_steps f on f.transaction_id = c.id and f.position = 0
        where c.network = q.network and c.sender = q.master and c.nonce >= q.master_nonce
        union
        select a.transfer_id from transfer_authorisations a
        where a.network = q.network and a.from_address = q.source and a.number > q.authorised
      ), costs as (
        select s.sender, s.to_address, s.kind, s.value, ${cost} as cost
        from made join transfer_steps s on s.transfer_id = made.id where s.kind not in ('claim', 'refill', 'revoke')
        union all
        select s.sender, s.to_address, s.kind, s.value, ${cost}
        from chain_transactions c join transfer_steps s on s.transaction_id = c.id
        where c.network = q.network and s.kind in ('claim', 'refill', 'revoke')
          and ((c.sender = q.source and c.nonce >= q.source_nonce) or (c.sender = q.master and c.nonce >= q.master_nonce))
      )
      select
        (select coalesce(sum(t.raw_amount), 0)::text from made join transfers t on t.id = made.id
          where t.from_address = q.source and t.from_token = q.token) as token,
        (select coalesce(sum(case when sender = q.source then cost else -value end), 0)::text from costs
          where sender = q.source or (kind = 'top-up' and to_address = q.source)) as source,
        (select coalesce(sum(cost), 0)::text from costs where sender = q.master) as master
    ) as sums order by q.place`,
  )
}
