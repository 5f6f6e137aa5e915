import { z } from 'zod'
import { StoredBigInt, StoredHex } from '../../../platform/db/columns.ts'
import { type Sql, sql, type Tx } from '../../../platform/db/db.ts'
import { onAnyOf } from '../../../platform/db/on-any-of.ts'
import { id } from '../../../platform/ids.ts'
import { listDueChecks, shareOwnerSql } from '../../plans/index.ts'
import type { AuthorizationPayload, PlannedBounds } from '../../relayer/index.ts'
import type { TransferId } from '../store.ts'

/** Name of gasless transfers in the relayer. */
export const gaslessPurpose = 'transfers.gasless'

/** A transfer to be signed by its wallet, of any tenant, since the settler is the operator's. */
const UnsignedRow = z.object({
  transferId: id('wtx'),
  network: z.string(),
  asset: StoredHex,
  fromAddress: StoredHex,
  toAddress: StoredHex,
  rawAmount: StoredBigInt,
  nonce: z.instanceof(Uint8Array),
  validBefore: z.date(),
  isPast: z.boolean(),
})
/** `isPast`: it has expired by the database's clock. */
export type UnsignedRow = z.output<typeof UnsignedRow>

/** The message that a wallet will sign, fixed before signing. */
export interface NewGasless {
  readonly transferId: TransferId
  readonly network: string
  readonly asset: string
  readonly fromAddress: string
  /** 32 bytes. */
  readonly nonce: Uint8Array
  readonly validBefore: Date
  readonly createdAt: Date
  /** Share of the budget for the day of `createdAt`, in billionths of a US dollar. */
  readonly gasReservedNanoUsd: bigint
}

/** Stores the messages to sign, with their transfers, in this order; the caller has locked the wallets that pay. */
export async function insertGasless(tx: Tx, made: readonly NewGasless[]): Promise<void> {
  if (made.length === 0) return
  const each = <T>(read: (one: NewGasless) => T): T[] => made.map(read)
  await tx.run(sql`
    insert into transfer_authorisations (transfer_id, share_owner, network, asset, from_address, nonce, valid_before, status, created_at, gas_reserved_nano_usd)
    select transfer_id, ${shareOwnerSql(sql`t.organisation_id`)}, given.network, asset, given.from_address, nonce, valid_before, 'planned', given.created_at, gas
    from unnest(
      ${each(({ transferId }) => transferId)}::text[], ${each(({ network }) => network)}::text[], ${each(({ asset }) => asset)}::text[],
      ${each(({ fromAddress }) => fromAddress)}::text[], ${each(({ nonce }) => Buffer.from(nonce))}::bytea[],
      ${each(({ validBefore }) => validBefore)}::timestamptz[], ${each(({ createdAt }) => createdAt)}::timestamptz[],
      ${each(({ gasReservedNanoUsd }) => gasReservedNanoUsd.toString())}::numeric[]
    ) with ordinality as given (transfer_id, network, asset, from_address, nonce, valid_before, created_at, gas, position) join transfers t on t.id = transfer_id order by position`)
}

/** A condition: whether `takeUnsigned` would take any. */
export function isAnyUnsigned(networks: readonly string[]): Sql {
  return onAnyOf(
    networks,
    sql`select a.tried_at from transfer_authorisations a where a.network = n.network and a.status = 'planned' order by a.tried_at limit 1`,
  )
}

/** Unsigned transfers, as `listDueChecks` reads them: all are due, whatever the time of their last attempt. Migration 0301 indexes them. */
const unsigned = sql`(
  select transfer_id as id, network, share_owner as organisation_id, tried_at as check_at from transfer_authorisations where status = 'planned')`

/**
 * Takes unsigned transfers of a network in shares of their owners, those that were tried longest ago first, and notes the time. The transaction must
 * read in order.
 */
export async function takeUnsigned(tx: Tx, network: string, due: PlannedBounds): Promise<UnsignedRow[]> {
  const transferIds = await listDueChecks(tx, { table: unsigned, network, now: sql`'infinity'`, ...due })
  if (transferIds.length === 0) return []
  return tx.many(
    UnsignedRow,
    sql`
    with taken as materialized (
      select transfer_id from transfer_authorisations where transfer_id = any(${transferIds}::text[]) and status = 'planned' for update skip locked
    )
    update transfer_authorisations a set tried_at = now()
    from taken f join transfers t on t.id = f.transfer_id
    where a.transfer_id = f.transfer_id
    returning a.transfer_id, a.network, a.asset, a.from_address, t.to_address, t.raw_amount::text, a.nonce, a.valid_before,
      a.valid_before <= now() as is_past`,
  )
}

interface SignedTransfer {
  readonly transferId: TransferId
  readonly payload: AuthorizationPayload
}

/** Statement that marks transfers as signed and returns rows for the relayer; signed ones stay as they are. */
export function signing(signed: readonly SignedTransfer[]): Sql {
  return sql`
    update transfer_authorisations a set status = 'signed'
    from unnest(${signed.map(({ transferId }) => transferId)}::text[], ${signed.map(({ payload }) => JSON.stringify(payload))}::text[])
      as given (transfer_id, payload) join transfers t on t.id = given.transfer_id
    where a.transfer_id = given.transfer_id and a.status = 'planned'
    returning a.transfer_id as subject_id, a.network, t.organisation_id, t.environment, given.payload::jsonb as payload, a.valid_before, a.created_at`
}

/** Locks a transfer; returns whether it is still unsigned. */
export async function lockUnsigned(tx: Tx, transferId: TransferId): Promise<boolean> {
  const statement = sql`select 1 from transfer_authorisations where transfer_id = ${transferId} and status = 'planned' for update`
  return (await tx.many(z.object({}), statement)).length === 1
}

const EndedRow = z.object({
  transferId: id('wtx'),
  organisationId: id('org'),
  environment: z.enum(['test', 'live']),
  network: z.string(),
  createdAt: z.date(),
  gasReservedNanoUsd: StoredBigInt,
})
/** `gasReservedNanoUsd`: the amount that it reserved until now. */
export type EndedRow = z.output<typeof EndedRow>

/** Marks transfers as ended: they need no signature and reserve nothing any more. */
export function markGaslessEnded(tx: Tx, transferIds: readonly TransferId[]): Promise<EndedRow[]> {
  return tx.many(
    EndedRow,
    sql`
    with before as (
      select transfer_id, gas_reserved_nano_usd from transfer_authorisations where transfer_id = any(${transferIds}::text[])
      order by transfer_id for update
    )
    update transfer_authorisations a set status = 'ended', gas_reserved_nano_usd = 0
    from before b join transfers t on t.id = b.transfer_id where a.transfer_id = b.transfer_id
    returning a.transfer_id, t.organisation_id, t.environment, a.network, a.created_at, b.gas_reserved_nano_usd::text`,
  )
}
