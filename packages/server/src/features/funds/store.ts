import type { Address, Network } from '@purser/protocol'
import { z } from 'zod'
import type { ChainTransactionId } from '../../chain/port.ts'
import type { Tenant } from '../../platform/ctx.ts'
import { StoredBigInt, StoredHex } from '../../platform/db/columns.ts'
import { anyLength, type Queryable, type Sql, sql, type Tx } from '../../platform/db/db.ts'

/** A token or a chain's native coin, with the decimals of its amounts. */
export interface Coin {
  readonly symbol: string
  readonly decimals: number
  /** Undefined for the chain's native coin. */
  readonly address: Address | undefined
}

/** A token or the coin at a managed wallet. */
export interface WalletAsset {
  readonly tenant: Tenant
  readonly network: Network
  readonly walletId: string
  readonly owner: Address
  readonly coin: Coin
  /** A subject whose reservations are excluded. */
  readonly except?: string | undefined
}

/** The amount that one step takes from one asset. */
export interface Want {
  /** The token or coin that leaves; on Tempo a token, which also pays the gas. */
  readonly asset: WalletAsset
  readonly rawAmount: bigint
  readonly gasLimit: bigint
  readonly dataBytes: number
}

type Reason = 'transfer' | 'gas' | 'top-up' | 'sweep' | 'withdrawal'

/** The amount that one transaction or one authorization will take from an account. */
export interface NewReservation extends Want {
  readonly reason: Reason
  /** The transfer, the sweep's transfer or the withdrawal that it belongs to. */
  readonly subjectId: string
  /** Position of the step in its subject. */
  readonly part: number
  readonly transactionId: ChainTransactionId | null
  /** Nonce of an EIP-3009 authorization that the owner signs: 32 bytes. */
  readonly authorizationNonce: Uint8Array | null
  /** The caller that has the authorization of a payment signed. */
  readonly signedBy?: string | undefined
  /** The contract that gets an allowance of the amount, and so may take it also after the transaction has failed. */
  readonly spender?: string | null
}

/** An account of a network. */
export type Account = Pick<WalletAsset, 'network' | 'owner'>

/**
 * Locks these accounts, so that one transaction at a time reserves their money, in any process. Locks are taken in a fixed order, so that
 * no two transactions deadlock; call it once per transaction, before any other lock.
 */
export async function lockOwners(tx: Tx, accounts: readonly Account[]): Promise<void> {
  const names = [
    ...new Set(accounts.map(({ network, owner }) => `funds:${network.name}/${owner.toLowerCase()}`)),
  ].toSorted()
  await tx.run(sql`
    select pg_advisory_xact_lock(hashtextextended(name, 0)) from
      (select name from unnest(${names}::text[]) with ordinality as given (name, position) order by position offset 0) as ordered`)
}

/** Inserts reservations of one tenant; the caller has locked their owners. */
export async function insertReservations(tx: Tx, tenant: Tenant, rows: readonly NewReservation[]): Promise<void> {
  if (rows.length === 0) return
  const each = <T>(read: (row: NewReservation) => T): T[] => rows.map(read)
  await tx.run(sql`
    insert into reservations (organisation_id, environment, network, owner, asset, reason, subject_id, part, raw_amount, gas_limit, data_bytes,
      transaction_id, nonce, authorization_nonce, signed_by, spender)
    select ${tenant.organisationId}, ${tenant.environment}, given.network, owner, asset, reason, subject_id, part, raw_amount, given.gas_limit,
      data_bytes, transaction_id, c.nonce, authorization_nonce, given.signed_by, spender
    from unnest(
      ${each(({ asset }) => asset.network.name)}::text[], ${each(({ asset }) => asset.owner)}::text[], ${each(({ asset }) => asset.coin.symbol)}::text[],
      ${each(({ reason }) => reason)}::text[], ${each(({ subjectId }) => subjectId)}::text[], ${each(({ part }) => part)}::integer[],
      ${each(({ rawAmount }) => rawAmount)}::numeric[], ${each(({ gasLimit }) => gasLimit)}::numeric[],
      ${each(({ dataBytes }) => dataBytes)}::integer[], ${each(({ transactionId }) => transactionId)}::text[],
      ${each(({ authorizationNonce }) => authorizationNonce)}::bytea[], ${each(({ signedBy }) => signedBy ?? null)}::text[],
      ${each(({ spender }) => spender?.toLowerCase() ?? null)}::text[]
    ) as given (network, owner, asset, reason, subject_id, part, raw_amount, gas_limit, data_bytes, transaction_id, authorization_nonce, signed_by, spender)
    left join chain_transactions c on c.id = transaction_id`)
}

/** Assigns a step's reservations to the transaction that executes it, whose gas limit may differ from the planned one. */
export async function assignReservations(
  tx: Tx,
  { subjectId, part }: Pick<NewReservation, 'subjectId' | 'part'>,
  transactionId: ChainTransactionId,
): Promise<void> {
  await tx.run(sql`
    update reservations r set transaction_id = c.id, nonce = c.nonce, gas_limit = case when r.gas_limit = 0 then 0 else c.gas_limit end
    from chain_transactions c where c.id = ${transactionId} and r.subject_id = ${subjectId} and r.part = ${part}`)
}

/** Assigns the reservation of a waiting subject to the authorization that it signs now. */
export async function authorizeReservation(
  tx: Tx,
  subjectId: string,
  { rawAmount, nonce, signedBy }: { readonly rawAmount: bigint; readonly nonce: Uint8Array; readonly signedBy: string },
): Promise<void> {
  await tx.run(sql`
    update reservations set raw_amount = ${rawAmount.toString()}, authorization_nonce = ${Buffer.from(nonce)}, signed_by = ${signedBy}
    where subject_id = ${subjectId} and nonce is null and authorization_nonce is null`)
}

/** Deletes a subject's reservations that have no transaction yet, so that it can reserve anew in the same transaction. */
export async function dropReservations(tx: Tx, subjectId: string): Promise<void> {
  await tx.run(
    sql`delete from reservations where subject_id = ${subjectId} and nonce is null and authorization_nonce is null`,
  )
}

/** A subject that has ended; `isBack`: its authorization can never be used. */
export interface EndedSubject {
  readonly subjectId: string
  readonly isBack: boolean
}

/**
 * Releases reservations that the subjects can never take: steps without a transaction, and void authorizations. The others stay until no
 * reader can use a block from before them (`pruneReservations`).
 */
export async function endReservations(tx: Tx, subjects: readonly EndedSubject[]): Promise<void> {
  if (subjects.length === 0) return
  const given = sql`unnest(${subjects.map(({ subjectId }) => subjectId)}::text[], ${subjects.map(({ isBack }) => isBack)}::boolean[])
    as given (subject_id, is_back)`
  await tx.run(sql`
    with gone as (
      delete from reservations r using ${given}
      where r.subject_id = given.subject_id and r.nonce is null and (r.authorization_nonce is null or given.is_back)
    )
    update reservations r set ended_at = now() from ${given}
    where r.subject_id = given.subject_id and r.authorization_nonce is not null and not given.is_back and r.ended_at is null`)
}

/**
 * Keeps the amounts of subjects that failed before their call had a transaction: from the nonce of this approval on, what is left of the allowance
 * counts. Call it before `endReservations`, which releases steps without a transaction.
 */
export async function keepAllowances(
  tx: Tx,
  approved: readonly { readonly subjectId: string; readonly transactionId: ChainTransactionId }[],
): Promise<void> {
  if (approved.length === 0) return
  await tx.run(sql`
    update reservations r set transaction_id = c.id, nonce = c.nonce
    from unnest(
      ${approved.map(({ subjectId }) => subjectId)}::text[], ${approved.map(({ transactionId }) => transactionId)}::text[]
    ) as given (subject_id, transaction_id) join chain_transactions c on c.id = given.transaction_id
    where r.subject_id = given.subject_id and r.spender is not null and r.nonce is null`)
}

/** Releases the amounts that were reserved for allowances, for subjects whose contracts have had no allowance since their calls. */
export async function endAllowances(db: Queryable, subjectIds: readonly string[]): Promise<void> {
  if (subjectIds.length === 0) return
  await db.run(
    sql`update reservations set spender = null where subject_id = any(${subjectIds}::text[]) and spender is not null`,
  )
}

/**
 * Releases the amounts that were reserved for allowances, for balances of this block and later ones, in which the allowances are zero. The rows stay
 * until `deleteEnded`, because balances of earlier blocks may still be in use, and in those the contract has not taken its tokens yet.
 */
export async function markAllowancesGone(
  db: Queryable,
  subjectIds: readonly string[],
  { block }: { readonly block: bigint },
): Promise<void> {
  await db.run(sql`
    update reservations set allowance_gone = ${block}, ended_at = now() where subject_id = any(${subjectIds}::text[]) and spender is not null`)
}

const UnderWayRow = z.object({
  readAt: z.date(),
  owner: z.string().nullable(),
  seq: z.bigint().nullable(),
  asset: z.string().nullable(),
  nonce: z.instanceof(Uint8Array).nullable(),
  spender: StoredHex.nullable(),
})

/** Reservations of accounts that the chain may already have taken. */
export interface UnderWay {
  /** The time at which the statement began, by the database's clock: the clocks of the processes do not matter. */
  readonly readAt: Date
  /** Accounts with reservations that have a nonce. */
  readonly senders: ReadonlySet<string>
  /** Authorizations with reservations; `nonce` has 32 bytes. */
  readonly authorizations: readonly {
    readonly seq: bigint
    readonly owner: string
    readonly asset: string
    readonly nonce: Uint8Array
  }[]
  /** Reservations whose contract may have an allowance. */
  readonly allowances: readonly {
    readonly seq: bigint
    readonly owner: string
    readonly asset: string
    readonly spender: `0x${string}`
  }[]
}

/** Reads the reservations of these assets that are in progress, in one statement. */
export async function readUnderWay(
  db: Queryable,
  network: string,
  assets: readonly { readonly owner: string; readonly asset: string }[],
): Promise<UnderWay> {
  const owners = [...new Set(assets.map(({ owner }) => owner))]
  const isGiven = sql`network = ${network} and owner = any(${anyLength(owners)}) and (owner, asset) in (
        select * from unnest(${anyLength(assets.map(({ owner }) => owner))}, ${anyLength(assets.map(({ asset }) => asset))}))`
  const [first, ...others] = await db.many(
    UnderWayRow,
    sql`
    select statement_timestamp() as read_at, found.owner, found.seq, found.asset, found.nonce, found.spender
    from (values (1)) as always left join (
      select owner, null::bigint as seq, null::text as asset, null::bytea as nonce, null::text as spender from unnest(${anyLength(owners)}) as given (owner)
      where exists (select from reservations r where r.network = ${network} and r.owner = given.owner and r.nonce is not null)
      union all
      select owner, seq, asset, authorization_nonce, null from reservations
      where ${isGiven} and authorization_nonce is not null
      union all
      select owner, seq, asset, null, spender from reservations
      where ${isGiven} and spender is not null
    ) as found on true`,
  )
  if (first === undefined) throw new Error('the database returned no time')
  return underWayOf(first.readAt, [first, ...others])
}

function underWayOf(readAt: Date, rows: readonly z.output<typeof UnderWayRow>[]): UnderWay {
  return {
    readAt,
    senders: new Set(rows.flatMap(({ owner, seq }) => (owner !== null && seq === null ? [owner] : []))),
    authorizations: rows.flatMap(({ owner, seq, asset, nonce }) =>
      owner === null || seq === null || asset === null || nonce === null ? [] : [{ owner, seq, asset, nonce }],
    ),
    allowances: rows.flatMap(({ owner, seq, asset, spender }) =>
      owner === null || seq === null || asset === null || spender === null ? [] : [{ owner, seq, asset, spender }],
    ),
  }
}

/** A query for the reserved amount of an asset, as of a block. */
export interface ReservedQuestion {
  readonly network: string
  readonly owner: string
  readonly asset: string
  /** The number of the block. */
  readonly block: bigint
  /** The owner's transaction count in the block, or a lower number: reservations with a lower nonce are in the block's balance. */
  readonly nonce: bigint
  /** The reservations whose authorization is used in the block. */
  readonly used: readonly bigint[]
  /** The rest of the allowances for reservations in the block. */
  readonly allowed: readonly Allowed[]
  /** Wei per gas and per 256 bytes, for transactions that are not signed yet. */
  readonly maxFee: bigint
  readonly l1Fee: bigint
  /** A subject whose reservations are excluded. */
  readonly except: string | undefined
}

/** The amount that a contract may still take of a reservation, in the asset's smallest unit. */
export interface Allowed {
  readonly seq: bigint
  readonly raw: bigint
}

/** Index value of a step without a nonce: greater than any nonce. */
const noNonce = sql`9223372036854775807`

const Reserved = z.object({ raw: StoredBigInt, wei: StoredBigInt, readAt: z.date() })
/**
 * `raw`: the amounts, in the asset's smallest unit. `wei`: gas and data fees at most; on Tempo in 1e-18 USD. `readAt`: when the statement began, by
 * the database's clock.
 */
export type Reserved = z.output<typeof Reserved>

/**
 * Returns them in the order of the queries. Steps whose nonces are used count with what is left of the allowance of their contract, once for each
 * contract, since it can take that once; wholly where it is not known.
 */
export function sumReserved(db: Queryable, questions: readonly ReservedQuestion[]): Promise<Reserved[]> {
  const column = <T, V>(rows: readonly T[], read: (row: T) => V, type = sql`bigint`): Sql =>
    anyLength(rows.map(read), type)
  const used = questions.flatMap(({ used }, index) => used.map((seq) => ({ position: index + 1, seq })))
  const allowed = questions.flatMap(({ allowed }, index) => allowed.map((one) => ({ position: index + 1, ...one })))
  return db.many(
    Reserved,
    sql`
    with q as materialized (
      select * from unnest(
        ${column(questions, ({ network }) => network, sql`text`)}, ${column(questions, ({ owner }) => owner, sql`text`)}, ${column(questions, ({ asset }) => asset, sql`text`)},
        ${column(questions, ({ block }) => block, sql`bigint`)}, ${column(questions, ({ nonce }) => nonce, sql`bigint`)}, ${column(questions, ({ maxFee }) => maxFee, sql`numeric`)}, ${column(questions, ({ l1Fee }) => l1Fee, sql`numeric`)},
        ${column(questions, ({ except }) => except ?? null, sql`text`)}
      ) with ordinality as given (network, owner, asset, block, nonce, max_fee, l1_fee, except_subject, position)
    ), sums as (
      select q.position, sum(r.raw_amount) as raw,
        sum(case when r.gas_limit = 0 then 0 else r.gas_limit * coalesce(
          (select a.max_fee from transaction_attempts a where a.transaction_id = r.transaction_id order by a.sequence desc limit 1), q.max_fee)
          + q.l1_fee * ((r.data_bytes + 383) / 256) end) as wei
      from q cross join lateral (
        select r.* from reservations r
        where r.network = q.network and r.owner = q.owner and r.asset = q.asset and coalesce(r.nonce, ${noNonce}) >= q.nonce
          and r.subject_id is distinct from q.except_subject offset 0
      ) as r left join unnest(
        ${column(used, ({ position }) => position)}, ${column(used, ({ seq }) => seq)}
      ) as u (position, seq) on u.position = q.position and u.seq = r.seq
      where u.seq is null group by q.position
    )
    select (coalesce(sums.raw, 0) + taken.raw)::text as raw, coalesce(sums.wei, 0)::text as wei, statement_timestamp() as read_at
    from q left join sums on sums.position = q.position cross join lateral (
      select coalesce(sum(kept.raw), 0) as raw from (
      select least(sum(r.raw_amount), a.raw) as raw
      from reservations r left join unnest(
        ${column(allowed, ({ position }) => position)}, ${column(allowed, ({ seq }) => seq)}, ${column(allowed, ({ raw }) => raw, sql`numeric`)}
      ) as a (position, seq, raw) on a.position = q.position and a.seq = r.seq
      where r.network = q.network and r.owner = q.owner and r.asset = q.asset and r.spender is not null and r.nonce < q.nonce
        and (r.allowance_gone is null or r.allowance_gone > q.block) and r.subject_id is distinct from q.except_subject
      group by r.spender, a.raw) as kept
    ) as taken order by q.position`,
  )
}

const OpenNetwork = z.object({ network: z.string() })

/** The networks of reservations that have ended since `markReservationsEnded` last ran. */
export async function listEndedNetworks(db: Queryable): Promise<string[]> {
  const rows = await db.many(
    OpenNetwork,
    sql`
    select distinct r.network from reservations r left join chain_transactions c on c.id = r.transaction_id
    where r.ended_block is null and (r.ended_at is not null or c.status = 'final')`,
  )
  return rows.map(({ network }) => network)
}

/** Marks reservations that have ended in this block of their network or an earlier one. */
export async function markReservationsEnded(db: Queryable, network: string, block: bigint): Promise<void> {
  await db.run(sql`
    update reservations r set ended_at = coalesce(r.ended_at, now()), ended_block = ${block}
    where r.network = ${network} and r.ended_block is null
      and (r.ended_at is not null or exists (select from chain_transactions c where c.id = r.transaction_id and c.status = 'final'))`)
}

/**
 * Deletes reservations that ended this many seconds ago and whose block the watcher has passed: balances of earlier blocks are not read any
 * more, and none is used for longer than `snapshotMsMax`. Those of transfers whose block is not final stay, since their bytes are sent again if it is
 * undone. Those whose contract may have an allowance stay: of transfers that go on or have an approval to revoke.
 */
export async function deleteEnded(
  db: Queryable,
  bounds: { readonly seconds: number; readonly most: number },
): Promise<number> {
  return db.run(sql`
    delete from reservations where seq in (
      select r.seq from reservations r join deposit_cursors d on d.network = r.network
      where (r.spender is null or r.allowance_gone <= d.scanned or not exists (
          select from transfers t where t.id = r.subject_id and (t.ended_at is null or t.revoke_at is not null)))
        and r.ended_block <= d.scanned and r.ended_at < now() - ${bounds.seconds} * interval '1 second'
        and not exists (select from chain_transactions c where c.id = r.transaction_id and c.status <> 'final')
        and not exists (select from transfers t where t.id = r.subject_id and t.finality_at is not null)
      order by r.ended_at limit ${bounds.most})`)
}
