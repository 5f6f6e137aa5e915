import { z } from 'zod'
import type { Tenant } from '../../../../platform/ctx.ts'
import { StoredBigInt, StoredHex } from '../../../../platform/db/columns.ts'
import { type Db, type Queryable, type Sql, sql } from '../../../../platform/db/db.ts'
import { onAnyOf } from '../../../../platform/db/on-any-of.ts'
import { idIn, idIs } from '../../../../platform/db/page.ts'
import { id, type PaymentId } from '../../../../platform/ids.ts'
import { type DueCursors, listDueChecks } from '../../../plans/index.ts'
import { paymentStatuses } from '../../schema.ts'
import { StoredTempoTransaction } from '../../store.ts'

/** A payment whose transaction was broadcast and whose outcome is open. Of any tenant: the chain is read for all at once. */
export const SentRow = z.object({
  id: id('pay'),
  organisationId: id('org'),
  environment: z.enum(['test', 'live']),
  walletId: z.string().nullable(),
  network: z.string(),
  chain: z.string(),
  token: z.string(),
  decimals: z.number(),
  asset: StoredHex,
  rawAmount: StoredBigInt,
  payTo: StoredHex,
  payer: z.string(),
  settlement: StoredTempoTransaction,
  txHash: StoredHex,
  settlingAt: z.date(),
  failureReason: z.string().nullable(),
  hasPlace: z.boolean(),
})
export type SentRow = z.output<typeof SentRow>

const columns = sql`id, organisation_id, environment, wallet_id, network, chain, token, decimals, asset, raw_amount, pay_to, payer, settlement,
  tx_hash, settling_at, failure_reason, has_place`

const isOpen = sql`status = 'settling' and settlement ->> 'kind' = 'tempo'`

/** A condition: whether the chain is to be read for any open payment of the networks. */
export function isAnyDue(networks: readonly string[]): Sql {
  return onAnyOf(
    networks,
    sql`select check_at from payments where network = n.network and check_at is not null and check_at <= now() order by check_at limit 1`,
  )
}

/**
 * Next check of an open payment: after a quarter of its age, 0.5 to 30 seconds; at the latest 7 seconds after `valid_before`, and from then on by the
 * time since.
 */
const nextCheck = sql`
  case when valid_before + interval '7 seconds' > now()
    then least(valid_before + interval '7 seconds', now() + least(greatest((now() - settling_at) / 4, interval '0.5 seconds'), interval '30 seconds'))
    else now() + least(greatest((now() - valid_before) / 4, interval '0.5 seconds'), interval '30 seconds') end`

/**
 * Takes open payments of one network for which the chain is to be read, fairly by share owner, and postpones each before the read: one whose read
 * always fails, or even ends the process, delays no others. The interval grows with the age of the payment, so that a payment that is never mined
 * costs little. A payment that is ending meanwhile is left out.
 */
export function takeDue(
  db: Db,
  network: string,
  due: { readonly most: number; readonly cursors: DueCursors },
): Promise<SentRow[]> {
  return db.tx(
    async (tx) => {
      const ids = await listDueChecks(tx, { table: sql`payments`, network, now: sql`now()`, ...due })
      if (ids.length === 0) return []
      return tx.many(
        SentRow,
        sql`
        with due as (
          select id from payments where ${idIn(sql`id`, ids)} and check_at <= now() and ${isOpen} order by id for no key update skip locked
        )
        update payments set check_at = ${nextCheck} where ${idIn(sql`id`, ids)} and id in (select id from due)
        returning ${columns}`,
      )
    },
    { readsInOrder: true },
  )
}

const OpenHashRow = SentRow.pick({ id: true, txHash: true })

/** Returns a payer's open payments of one token and their transactions, over all organisations. */
export function listOpenHashes(
  db: Queryable,
  { payer, network, asset }: { readonly payer: string; readonly network: string; readonly asset: string },
  most: number,
): Promise<z.output<typeof OpenHashRow>[]> {
  return db.many(
    OpenHashRow,
    sql`
    select id, tx_hash from payments
    where payer = ${payer} and network = ${network} and asset = ${asset} and status in ('verified', 'settling') and ${isOpen}
    order by id limit ${most}`,
  )
}

/** Returns the payment while its outcome is open. */
export function findSent(db: Queryable, tenant: Tenant, paymentId: PaymentId): Promise<SentRow | undefined> {
  return db.maybeOne(
    SentRow,
    sql`
    select ${columns} from payments
    where ${idIs(paymentId)} and organisation_id is not distinct from ${tenant.organisationId} and environment is not distinct from ${tenant.environment} and ${isOpen}`,
  )
}

/** Whether the challenge has already bought something, for any organisation. */
export async function isUsed(db: Queryable, challengeId: string): Promise<boolean> {
  const { is } = await db.one(
    z.object({ is: z.boolean() }),
    sql`select exists (select from payment_claims where challenge_hash = claim_hash(${challengeId})) as is`,
  )
  return is
}

const PurchaseRow = z.object({ status: z.enum(paymentStatuses).nullable(), txHash: z.string().nullable() })

/**
 * Returns the payment that used the challenge, of any organisation; without a status if it is archived, and without a hash if no transaction made it
 * or its transaction failed.
 */
export function findPurchase(db: Queryable, challengeId: string): Promise<z.output<typeof PurchaseRow> | undefined> {
  return db.maybeOne(
    PurchaseRow,
    sql`
    select p.status, p.tx_hash from payment_claims as claim
    left join lateral (select status, tx_hash from payments where id = claim.payment_id) as p on true
    where claim.challenge_hash = claim_hash(${challengeId})`,
  )
}
