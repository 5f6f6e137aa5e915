import { z } from 'zod'
import { StoredBigInt } from '../../../platform/db/columns.ts'
import { type Queryable, type Sql, sql, type Tx } from '../../../platform/db/db.ts'
import { onAnyOf } from '../../../platform/db/on-any-of.ts'
import { id, type SweepId } from '../../../platform/ids.ts'
import { listDueChecks } from '../../plans/index.ts'
import type { AuthorizationPayload, PlannedBounds } from '../../relayer/index.ts'
import { columns, isScreened, keysOf, SweepTransferRow, type TransferKey } from './transfer-store.ts'

/** A transfer to be signed, with the path of the child's key. */
const UnsignedRow = SweepTransferRow.extend({
  account: z.number(),
  childIndex: z.bigint().transform(Number),
  isPast: z.boolean(),
})
/** `isPast`: it has expired by the database's clock. */
export type UnsignedRow = z.output<typeof UnsignedRow>

/** The key in a relay's subject: a sweep and one of its children. */
export function keyOf(subjectId: string): TransferKey {
  const [sweepId, childAddressId] = subjectId.split(' ')
  return { sweepId: id('swp').parse(sweepId), childAddressId: id('cad').parse(childAddressId) }
}

/** A condition: whether any transfer on the networks waits for its signature or its transaction. */
export function isAnyPlanned(networks: readonly string[]): Sql {
  return onAnyOf(
    networks,
    sql`select t.tried_at from sweep_transfers t where t.network = n.network and t.status = 'planned' order by t.tried_at limit 1`,
  )
}

/** Transfers without a signature or a transaction, as `listDueChecks` reads them: all are due, whatever the time of their last attempt. Migration 0301 indexes them. */
const planned = sql`(
  select sweep_id || ' ' || child_address_id as id, network, share_owner as organisation_id, tried_at as check_at
  from sweep_transfers where status = 'planned')`

/** Names of transfers of a network that are planned, in shares of their owners. The transaction must read in order. */
export function listPlannedNames(db: Queryable, network: string, due: PlannedBounds): Promise<readonly string[]> {
  return listDueChecks(db, { table: planned, network, now: sql`'infinity'`, ...due })
}

/**
 * Takes unsigned transfers of a network in shares of their owners, those that were tried longest ago first, and notes the time. The transaction must
 * read in order.
 */
export async function takeUnsigned(tx: Tx, network: string, due: PlannedBounds): Promise<UnsignedRow[]> {
  const names = await listPlannedNames(tx, network, due)
  if (names.length === 0) return []
  return tx.many(
    UnsignedRow,
    sql`
    with taken as materialized (
      select sweep_id, child_address_id from sweep_transfers
      where (sweep_id, child_address_id) in (${keysOf(names.map(keyOf))}) and status = 'planned' for update skip locked
    )
    update sweep_transfers t set tried_at = now()
    from taken f join child_addresses c on c.id = f.child_address_id join master_wallets m on m.id = c.master_wallet_id
    where t.sweep_id = f.sweep_id and t.child_address_id = f.child_address_id
    returning ${columns}, account, child_index, t.valid_before <= now() as is_past`,
  )
}

type SignedTransfer = TransferKey & { readonly payload: AuthorizationPayload }

/** Statement that marks transfers as signed and returns rows for the relayer; signed ones stay as they are. */
export function signing(signed: readonly SignedTransfer[]): Sql {
  return sql`
    update sweep_transfers t set status = 'signed'
    from unnest(${signed.map(({ sweepId }) => sweepId)}::text[], ${signed.map(({ childAddressId }) => childAddressId)}::text[],
      ${signed.map(({ payload }) => JSON.stringify(payload))}::text[]) as given (sweep_id, child_address_id, payload)
    where t.sweep_id = given.sweep_id and t.child_address_id = given.child_address_id and t.status = 'planned'
    returning t.sweep_id || ' ' || t.child_address_id as subject_id, t.network, t.organisation_id, t.environment, given.payload::jsonb as payload,
      t.valid_before, t.created_at`
}

const AdmittedRow = SweepTransferRow.extend({ isScreened: z.boolean() })

/** Transfers that are about to be sent, and whether all recent deposits of their child are screened. */
export function listToAdmit(tx: Tx, keys: readonly TransferKey[]): Promise<z.output<typeof AdmittedRow>[]> {
  return tx.many(
    AdmittedRow,
    sql`
    select ${columns}, ${isScreened} as is_screened from sweep_transfers t
    where (t.sweep_id, t.child_address_id) in (${keysOf(keys)}) and t.status = 'signed'`,
  )
}

/** Stores the newest hash under which transfers were sent. */
export async function markSent(tx: Tx, sent: readonly (TransferKey & { readonly hash: string })[]): Promise<void> {
  await tx.run(sql`
    update sweep_transfers t set status = 'sent', tx_hash = s.hash
    from unnest(${sent.map(({ sweepId }) => sweepId)}::text[], ${sent.map(({ childAddressId }) => childAddressId)}::text[],
      ${sent.map(({ hash }) => hash)}::text[]) as s (sweep_id, child_address_id, hash)
    where t.sweep_id = s.sweep_id and t.child_address_id = s.child_address_id and t.status in ('signed', 'sent')`)
}

/** Makes transfers wait again: the transaction that carried them did not move their money, so its hash is removed. */
export async function markLeft(tx: Tx, keys: readonly TransferKey[]): Promise<void> {
  await tx.run(sql`
    update sweep_transfers set status = 'signed', tx_hash = null
    where (sweep_id, child_address_id) in (${keysOf(keys)}) and status = 'sent'`)
}

/** Locks the sweeps of transfers that are about to end, in a fixed order, so that the last to end detects that it is the last. */
export async function lockSweeps(tx: Tx, sweepIds: readonly SweepId[]): Promise<void> {
  await tx.many(
    z.object({ id: id('swp') }),
    sql`select id from sweeps where id = any(${sweepIds}::text[]) order by id for update`,
  )
}

const EndedRow = z.object({
  sweepId: id('swp'),
  childAddressId: id('cad'),
  organisationId: id('org'),
  environment: z.enum(['test', 'live']),
  network: z.string(),
  createdAt: z.date(),
  status: z.enum(['swept', 'failed']),
  txHash: z.string().nullable(),
  failureReason: z.string().nullable(),
  gasReservedNanoUsd: StoredBigInt,
})
/** `gasReservedNanoUsd`: the amount that it reserved until it ended. */
export type EndedRow = z.output<typeof EndedRow>

/** The end of a transfer: by this transaction, or without its money moving, for this reason. */
export type TransferEnd = TransferKey &
  (
    | { readonly status: 'swept'; readonly txHash: string; readonly reason: null }
    | { readonly status: 'failed'; readonly txHash: null; readonly reason: string }
  )

/** Ends transfers; returns those that this call ended. A failed one can still become swept: the chain decides. */
export function markSweepsEnded(tx: Tx, ends: readonly TransferEnd[]): Promise<EndedRow[]> {
  return tx.many(
    EndedRow,
    sql`
    with before as (
      select t.sweep_id, t.child_address_id, t.gas_reserved_nano_usd, given.status, given.tx_hash, given.reason
      from unnest(${ends.map(({ sweepId }) => sweepId)}::text[], ${ends.map(({ childAddressId }) => childAddressId)}::text[],
        ${ends.map(({ status }) => status)}::text[], ${ends.map(({ txHash }) => txHash)}::text[], ${ends.map(({ reason }) => reason)}::text[])
        as given (sweep_id, child_address_id, status, tx_hash, reason)
        join sweep_transfers t using (sweep_id, child_address_id)
      where t.status in ('planned', 'signed', 'sent') or (t.status = 'failed' and given.status = 'swept')
      order by t.sweep_id, t.child_address_id for update of t
    )
    update sweep_transfers t set status = b.status, tx_hash = b.tx_hash, failure_reason = b.reason, gas_reserved_nano_usd = 0
    from before b where t.sweep_id = b.sweep_id and t.child_address_id = b.child_address_id
    returning t.sweep_id, t.child_address_id, t.organisation_id, t.environment, t.network, t.created_at, t.status, t.tx_hash, t.failure_reason,
      b.gas_reserved_nano_usd::text`,
  )
}
