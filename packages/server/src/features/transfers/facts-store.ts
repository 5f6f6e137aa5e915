import { z } from 'zod'
import { type Queryable, sql } from '../../platform/db/db.ts'
import type { Prices } from './weigh.ts'

const Raw = z.string().transform((text) => BigInt(text))

/** An account on a network. */
export interface Account {
  readonly network: string
  readonly address: string
}

const columnsOf = (accounts: readonly Account[]) => sql`
  unnest(${accounts.map(({ network }) => network)}::text[], ${accounts.map(({ address }) => address)}::text[])`

const NonceRow = z.object({ network: z.string(), address: z.string(), nextNonce: z.bigint() })

/** The nonces that lanes give next; an account without a lane is not there. */
export function listNextNonces(db: Queryable, accounts: readonly Account[]): Promise<z.output<typeof NonceRow>[]> {
  return db.many(
    NonceRow,
    sql`
    select network, sender as address, next_nonce from lanes
    where (network, sender) in (select * from ${columnsOf(accounts)})`,
  )
}

const PromisedRow = z.object({ network: z.string(), address: z.string(), token: z.string(), raw: Raw })

/** What transfers of these accounts will still take that no block shows yet, by token; the coin for gas is not in it. */
export function listPromised(db: Queryable, accounts: readonly Account[]): Promise<z.output<typeof PromisedRow>[]> {
  return db.many(
    PromisedRow,
    sql`
    select from_network as network, from_address as address, from_token as token, sum(raw_amount)::text as raw
    from ${columnsOf(accounts)} as given (network, address) join transfers on from_network = network and from_address = address
    where ended_at is null and status = 'pending' and left_at is null
    group by from_network, from_address, from_token`,
  )
}

/** Shares of the data fee of a step `s` and of a transaction `t`, as the protocol's `l1FeeOf` reckons them: SQL divides whole numbers downwards. */
export const sharesOfStep = sql`((octet_length(s.data) + 383) / 256)`
const sharesOfTransaction = sql`((octet_length(t.data) + 383) / 256)`

const CostRow = z.object({ network: z.string(), address: z.string(), wei: Raw })

/** Most wei that transactions of these accounts without a block, and steps that have none yet, may cost: value, gas at `maxFee` and the data fee. */
export function listOpenCosts(
  db: Queryable,
  accounts: readonly (Account & Prices)[],
): Promise<z.output<typeof CostRow>[]> {
  const given = sql`
    unnest(${accounts.map(({ network }) => network)}::text[], ${accounts.map(({ address }) => address)}::text[],
      ${accounts.map(({ maxFee }) => maxFee)}::numeric[], ${accounts.map(({ l1Fee }) => l1Fee)}::numeric[]
    ) as given (network, address, max_fee, l1_fee)`
  return db.many(
    CostRow,
    sql`
    select network, address, sum(wei)::text as wei from (
      select given.network, given.address, t.value + t.gas_limit * coalesce(
        (select a.max_fee from transaction_attempts a where a.transaction_id = t.id order by a.sequence desc limit 1), given.max_fee)
        + given.l1_fee * ${sharesOfTransaction} as wei
      from ${given} join chain_transactions t on t.network = given.network and t.sender = given.address and t.status in ('planned', 'sent')
      union all
      select given.network, given.address, s.value + s.gas_limit * given.max_fee + given.l1_fee * ${sharesOfStep} as wei
      from ${given} join transfer_steps s on s.sender = given.address and s.transaction_id is null
        join transfers t on t.id = s.transfer_id and t.from_network = given.network and t.ended_at is null
    ) as open group by network, address`,
  )
}

const LowestRow = z.object({ address: z.templateLiteral(['0x', z.string()]), nonce: z.bigint() })

/** The lowest nonce of each of these accounts that its lane has seen in no block; an account without any is not there. */
export function listLowestUnmined(db: Queryable, accounts: readonly Account[]): Promise<z.output<typeof LowestRow>[]> {
  return db.many(
    LowestRow,
    sql`
    select sender as address, min(nonce) as nonce from chain_transactions
    where (network, sender) in (select * from ${columnsOf(accounts)}) and status in ('planned', 'sent') group by sender`,
  )
}
