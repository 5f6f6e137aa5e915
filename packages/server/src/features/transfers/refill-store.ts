import { z } from 'zod'
import { StoredBigInt, StoredHex } from '../../platform/db/columns.ts'
import { type Queryable, type Sql, sql, type Tx } from '../../platform/db/db.ts'
import { onAnyOf } from '../../platform/db/on-any-of.ts'
import { id } from '../../platform/ids.ts'
import { type DueCursors, listDueChecks, shareOwnerSql } from '../plans/index.ts'
import { columns, type TransferId, TransferRow } from './store.ts'

/** A step of a child that is in no block yet, as last signed. */
export const WaitingRow = z.object({
  transferId: id('wtx'),
  /**
   * Whether the step revokes an approval. It needs gas although its transfer has ended, because later transactions of
   * the lane wait for it.
   */
  isRevoke: z.boolean(),
  organisationId: id('org'),
  environment: z.enum(['test', 'live']),
  walletId: z.string(),
  network: z.string(),
  sender: StoredHex,
  nonce: z.bigint(),
  value: StoredBigInt,
  gasLimit: StoredBigInt,
  dataBytes: z.number(),
  maxFee: StoredBigInt,
})
export type WaitingRow = z.output<typeof WaitingRow>

/** The steps to list: those of a network that were signed before this instant, of at most this many children. */
interface Waiting {
  readonly network: string
  readonly before: Date
  readonly most: number
}

/** A condition: whether any transaction on the networks is open, and so may wait for a block. */
export function mayAnyWait(networks: readonly string[]): Sql {
  return onAnyOf(
    networks,
    sql`select c.nonce from chain_transactions c where c.network = n.network and c.status <> 'final' order by c.sender, c.nonce limit 1`,
  )
}

/**
 * Returns for each child without a top-up in progress the first step that waits for a block: in shares of their owners, the first of each, then the
 * second of each. The order of an owner's children is drawn anew each time, so that neither a master that cannot pay nor a long queue hides the others.
 */
export function listWaiting(db: Queryable, { network, before, most }: Waiting): Promise<WaitingRow[]> {
  // Each run has another time, and so another order.
  const drawn = sql`md5(w.sender || ${before}::timestamptz::text)`
  return db.many(
    WaitingRow,
    sql`
    with waiting as materialized (
      select distinct on (c.sender) t.id as transfer_id, s.kind = 'revoke' as is_revoke, t.organisation_id, t.environment, t.wallet_id, c.network,
        c.sender, c.nonce, c.value::text as value, c.gas_limit::text as gas_limit, octet_length(c.data) as data_bytes, a.max_fee::text as max_fee
      from transfers t join transfer_steps s on s.transfer_id = t.id join chain_transactions c on c.id = s.transaction_id
      join lateral (select max_fee, created_at from transaction_attempts where transaction_id = c.id order by sequence desc limit 1) a on true
      where (t.ended_at is null or s.kind = 'revoke') and t.wallet_id like 'cad%' and s.sender = t.from_address and c.status = 'sent'
        and a.created_at < ${before} and c.network = ${network}
        and not exists (select from transfer_steps r where r.transfer_id = t.id and r.kind = 'refill' and r.done_at is null)
      order by c.sender, c.nonce
    ), owners as (
      select d.organisation_id, coalesce(${shareOwnerSql(sql`d.organisation_id`)}, d.organisation_id) as share_owner
      from (select distinct organisation_id from waiting) d
    ), dealt as (
      select w.*, row_number() over (partition by o.share_owner order by ${drawn}) as rank from waiting w join owners o using (organisation_id)
    )
    select transfer_id, is_revoke, organisation_id, environment, wallet_id, network, sender, nonce, value, gas_limit, data_bytes, max_fee
    from dealt w order by rank, ${drawn} limit ${most}`,
  )
}

/** A condition: whether any approval on the networks is due for a check. */
export function isAnyToRevoke(networks: readonly string[], now: Date): Sql {
  return onAnyOf(
    networks,
    sql`select t.revoke_at from transfers t where t.from_network = n.network and t.revoke_at <= ${now} order by t.revoke_at limit 1`,
  )
}

/** Failed transfers with an approval to check, as `listDueChecks` reads them. Migrations 0223 and 0283 index them. */
const toRevoke = sql`(
  select id, organisation_id, from_network as network, revoke_at as check_at from transfers where revoke_at is not null)`

/** Failed transfers of a network whose approval is due for a check, in shares of their owners. */
export async function listToRevoke(
  db: Queryable,
  network: string,
  { now, cursors }: { readonly now: Date; readonly cursors: DueCursors },
): Promise<TransferRow[]> {
  const ids = await listDueChecks(db, { table: toRevoke, network, now: sql`${now}::timestamptz`, most: 100, cursors })
  if (ids.length === 0) return []
  return db.many(
    TransferRow,
    sql`
    select ${columns} from transfers where id = any(${ids}::text[]) and revoke_at is not null
    order by array_position(${ids}::text[], id)`,
  )
}

/** Null if nothing remains to be revoked. */
export async function setRevokeAt(db: Queryable, transferId: TransferId, revokeAt: Date | null): Promise<void> {
  await db.run(sql`update transfers set revoke_at = ${revokeAt} where id = ${transferId} and revoke_at is not null`)
}

/** Locks the row; returns whether its approval still needs a check. */
export async function lockToRevoke(tx: Tx, transferId: TransferId): Promise<boolean> {
  const row = await tx.one(
    z.object({ isDue: z.boolean() }),
    sql`select revoke_at is not null as is_due from transfers where id = ${transferId} for update`,
  )
  return row.isDue
}

/** The last nonce of an account in the transactions that approve, call and revoke; -1 if there is none. */
export async function findLastNonce(db: Queryable, transferId: TransferId, sender: string): Promise<bigint> {
  const { nonce } = await db.one(
    z.object({ nonce: z.bigint() }),
    sql`
    select coalesce(max(c.nonce), -1) as nonce from transfer_steps s join chain_transactions c on c.id = s.transaction_id
    where s.transfer_id = ${transferId} and s.sender = ${sender} and s.kind in ('approve', 'partner', 'revoke')`,
  )
  return nonce
}

export async function countRevocations(db: Queryable, transferId: TransferId): Promise<number> {
  const { count } = await db.one(
    z.object({ count: z.bigint() }),
    sql`select count(*) as count from transfer_steps where transfer_id = ${transferId} and kind = 'revoke'`,
  )
  return Number(count)
}
