import { hexToBytes } from '@purser/protocol'
import { z } from 'zod'
import type { ChainTransactionId } from '../../chain/port.ts'
import type { Tenant } from '../../platform/ctx.ts'
import { type Queryable, sql, type Tx } from '../../platform/db/db.ts'
import { type EventId, type Id, id } from '../../platform/ids.ts'
import { ChainName } from '../chains/index.ts'
import { RouteName } from './schema.ts'

const Raw = z.string().transform((text) => BigInt(text))
const HexText = z.templateLiteral(['0x', z.string()])

export type TransferId = Id<'wtx'>

export const TransferRow = z.object({
  id: id('wtx'),
  organisationId: id('org'),
  environment: z.enum(['test', 'live']),
  walletId: z.union([id('mwt'), id('cad')]),
  fromAddress: HexText,
  toAddress: HexText,
  fromChain: ChainName,
  fromNetwork: z.string(),
  toChain: ChainName,
  toNetwork: z.string(),
  fromToken: z.string(),
  toToken: z.string(),
  decimals: z.number(),
  rawAmount: Raw,
  route: RouteName,
  routeReason: z.string(),
  status: z.enum(['pending', 'confirmed', 'failed']),
  reason: z.string().nullable(),
  txHash: HexText.nullable(),
  rawFee: Raw,
  answered: z.enum(['pending', 'confirmed', 'reverted']).nullable(),
  eventId: id('evt').nullable(),
  createdAt: z.date(),
  confirmedAt: z.date().nullable(),
  endedAt: z.date().nullable(),
  partner: z.enum(['cctp', 'relay', 'lifi', 'sandbox']).nullable(),
  partnerReference: z.string().nullable(),
  quoteExpiresAt: z.date().nullable(),
  toDecimals: z.number().nullable(),
  rawOut: Raw.nullable(),
  rawOutMin: Raw.nullable(),
  rawReceived: Raw.nullable(),
  receivedToken: HexText.nullable(),
  leftAt: z.date().nullable(),
  lookAt: z.date().nullable(),
  refundTxHash: HexText.nullable(),
  destinationTxHash: HexText.nullable(),
  refundedAt: z.date().nullable(),
})
export type TransferRow = z.output<typeof TransferRow>

export const StepRow = z.object({
  transferId: id('wtx'),
  position: z.number(),
  kind: z.enum(['top-up', 'send', 'approve', 'partner', 'claim']),
  sender: HexText,
  toAddress: HexText,
  data: z.instanceof(Uint8Array),
  value: Raw,
  gasLimit: Raw,
  transactionId: id('ctx').nullable(),
})
export type StepRow = z.output<typeof StepRow>

export const columns = sql`id, organisation_id, environment, wallet_id, from_address, to_address, from_chain, from_network, to_chain, to_network,
  from_token, to_token, decimals, raw_amount, route, route_reason, status, reason, tx_hash, raw_fee, answered, event_id, created_at,
  confirmed_at, ended_at, partner, partner_reference, quote_expires_at, to_decimals, raw_out, raw_out_min, raw_received, received_token, left_at,
  look_at, refund_tx_hash, destination_tx_hash, refunded_at`
export const stepColumns = sql`transfer_id, position, kind, sender, to_address, data, value, gas_limit, transaction_id`

export type NewTransferRow = Omit<
  TransferRow,
  | 'organisationId'
  | 'environment'
  | 'status'
  | 'reason'
  | 'txHash'
  | 'rawFee'
  | 'answered'
  | 'eventId'
  | 'confirmedAt'
  | 'endedAt'
  | 'rawReceived'
  | 'receivedToken'
  | 'leftAt'
  | 'lookAt'
  | 'refundTxHash'
  | 'destinationTxHash'
  | 'refundedAt'
>

/** Whose a transfer is: a caller's own, or the part of a withdrawal that happens on chain, which the withdrawal tells of. */
export type TransferPurpose = 'transfer' | 'withdrawal'

export async function insertTransfer(
  tx: Tx,
  tenant: Tenant,
  row: NewTransferRow & { readonly purpose: TransferPurpose },
): Promise<void> {
  await tx.run(sql`
    insert into transfers (id, organisation_id, environment, wallet_id, from_address, to_address, from_chain, from_network, to_chain, to_network,
      from_token, to_token, decimals, raw_amount, route, route_reason, status, purpose, created_at,
      partner, partner_reference, quote_expires_at, to_decimals, raw_out, raw_out_min)
    values (${row.id}, ${tenant.organisationId}, ${tenant.environment}, ${row.walletId}, ${row.fromAddress}, ${row.toAddress}, ${row.fromChain},
      ${row.fromNetwork}, ${row.toChain}, ${row.toNetwork}, ${row.fromToken}, ${row.toToken}, ${row.decimals}, ${row.rawAmount.toString()},
      ${row.route}, ${row.routeReason}, 'pending', ${row.purpose}, ${row.createdAt}, ${row.partner}, ${row.partnerReference}, ${row.quoteExpiresAt},
      ${row.toDecimals}, ${row.rawOut?.toString() ?? null}, ${row.rawOutMin?.toString() ?? null})`)
}

export async function insertStep(
  tx: Tx,
  step: Omit<StepRow, 'transactionId' | 'data'> & { readonly data: `0x${string}` },
): Promise<void> {
  await tx.run(sql`
    insert into transfer_steps (transfer_id, position, kind, sender, to_address, data, value, gas_limit)
    values (${step.transferId}, ${step.position}, ${step.kind}, ${step.sender}, ${step.toAddress}, ${hexToBytes(step.data)},
      ${step.value.toString()}, ${step.gasLimit.toString()})`)
}

/** Ties a step to the transaction that carries it out; once, whoever comes second changes nothing and is answered false. */
export async function assignStep(
  tx: Tx,
  { transferId, position }: Pick<StepRow, 'transferId' | 'position'>,
  transactionId: ChainTransactionId,
): Promise<boolean> {
  const changed = await tx.run(sql`
    update transfer_steps set transaction_id = ${transactionId}
    where transfer_id = ${transferId} and position = ${position} and transaction_id is null`)
  return changed === 1
}

export function findStepOf(tx: Tx, transactionId: ChainTransactionId): Promise<StepRow | undefined> {
  return tx.maybeOne(StepRow, sql`select ${stepColumns} from transfer_steps where transaction_id = ${transactionId}`)
}

/** The first step of a transfer that has no transaction yet. */
export function findNextStep(tx: Tx, transferId: TransferId): Promise<StepRow | undefined> {
  return tx.maybeOne(
    StepRow,
    sql`
    select ${stepColumns} from transfer_steps where transfer_id = ${transferId} and transaction_id is null order by position limit 1`,
  )
}

export function findTransfer(db: Queryable, tenant: Tenant, transferId: TransferId): Promise<TransferRow | undefined> {
  return db.maybeOne(
    TransferRow,
    sql`
    select ${columns} from transfers
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = ${transferId}`,
  )
}

/** The same, of the callers' own alone. */
export function findOwnTransfer(
  db: Queryable,
  tenant: Tenant,
  transferId: TransferId,
): Promise<TransferRow | undefined> {
  return db.maybeOne(
    TransferRow,
    sql`
    select ${columns} from transfers
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = ${transferId} and purpose = 'transfer'`,
  )
}

/** The hashes of those of these transfers that are signed. */
export async function findHashes(
  db: Queryable,
  tenant: Tenant,
  transferIds: readonly TransferId[],
): Promise<ReadonlyMap<TransferId, string>> {
  const rows = await db.many(
    z.object({ id: id('wtx'), txHash: HexText }),
    sql`
    select id, tx_hash from transfers
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and id = any(${transferIds}::text[])
      and tx_hash is not null`,
  )
  return new Map(rows.map((row) => [row.id, row.txHash]))
}

/** Holds the row: what a block says and what a caller is told come one after the other. */
export function lockTransfer(tx: Tx, transferId: TransferId): Promise<TransferRow> {
  return tx.one(TransferRow, sql`select ${columns} from transfers where id = ${transferId} for update`)
}

/** Newest first, one more than the limit. */
export function listTransfers(
  db: Queryable,
  tenant: Tenant,
  page: { readonly limit: number; readonly after: string | undefined; readonly walletId: string | undefined },
): Promise<TransferRow[]> {
  return db.many(
    TransferRow,
    sql`
    select ${columns} from transfers
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and purpose = 'transfer'
      and (${page.walletId ?? null}::text is null or wallet_id = ${page.walletId ?? null})
      and (${page.after ?? null}::text is null or id < ${page.after ?? null})
    order by id desc limit ${page.limit + 1}`,
  )
}

const Promised = z.object({ token: z.string(), raw: Raw })

/** What transfers of an address will still take that no block shows yet, by token; the coin for gas is not in it. */
export async function sumPromised(
  db: Queryable,
  { network, address }: { readonly network: string; readonly address: string },
): Promise<ReadonlyMap<string, bigint>> {
  const rows = await db.many(
    Promised,
    sql`
    select from_token as token, sum(raw_amount)::text as raw from transfers
    where from_network = ${network} and from_address = ${address} and ended_at is null and status = 'pending' and left_at is null
    group by from_token`,
  )
  return new Map(rows.map(({ token, raw }) => [token, raw]))
}

/** Most wei that an account's transactions without a block, and the steps that have none yet, may cost: value and gas. */
export async function sumOpenCost(
  db: Queryable,
  { network, address, maxFee }: { readonly network: string; readonly address: string; readonly maxFee: bigint },
): Promise<bigint> {
  const rows = await db.many(
    z.object({ wei: Raw }),
    sql`
    select coalesce(sum(t.value + t.gas_limit * coalesce((select a.max_fee from transaction_attempts a where a.transaction_id = t.id
      order by a.sequence desc limit 1), ${maxFee.toString()}::numeric)), 0)::text as wei
    from chain_transactions t where t.network = ${network} and t.sender = ${address} and t.status in ('planned', 'sent')
    union all
    select coalesce(sum(s.value + s.gas_limit * ${maxFee.toString()}::numeric), 0)::text as wei
    from transfer_steps s join transfers t on t.id = s.transfer_id
    where s.sender = ${address} and t.from_network = ${network} and s.transaction_id is null and t.ended_at is null`,
  )
  return rows.reduce((sum, { wei }) => sum + wei, 0n)
}

/** The nonce that an account's lane gives next; 0 where it has none yet. */
export async function findNextNonce(
  db: Queryable,
  { network, address }: { readonly network: string; readonly address: string },
): Promise<bigint> {
  const row = await db.maybeOne(
    z.object({ nextNonce: z.bigint() }),
    sql`select next_nonce from lanes where network = ${network} and sender = ${address}`,
  )
  return row?.nextNonce ?? 0n
}

const Drawn = z.object({ token: Raw, source: Raw, master: Raw })

/**
 * What transfers that took their first nonce from these on draw, whatever became of them since: of a token out of the wallet, and in wei
 * out of the wallet and its master, values and gas at this fee. What a master sends a child for its gas is the child's.
 */
export async function sumDrawnSince(
  db: Queryable,
  place: {
    readonly network: string
    readonly source: string
    readonly master: string
    readonly token: string
    readonly since: { readonly source: bigint; readonly master: bigint }
    readonly maxFee: bigint
  },
): Promise<z.output<typeof Drawn>> {
  const { network, source, master, token, since, maxFee } = place
  return db.one(
    Drawn,
    sql`
    with made as (
      select f.transfer_id as id from chain_transactions c join transfer_steps f on f.transaction_id = c.id and f.position = 0
      where c.network = ${network} and c.sender = ${source} and c.nonce >= ${since.source}
      union
      select f.transfer_id from chain_transactions c join transfer_steps f on f.transaction_id = c.id and f.position = 0
      where c.network = ${network} and c.sender = ${master} and c.nonce >= ${since.master}
    ), costs as (
      select s.sender, s.to_address, s.kind, s.value, s.value + s.gas_limit * ${maxFee.toString()}::numeric as cost
      from made join transfer_steps s on s.transfer_id = made.id
    )
    select
      (select coalesce(sum(t.raw_amount), 0)::text from made join transfers t on t.id = made.id
        where t.from_address = ${source} and t.from_token = ${token}) as token,
      (select coalesce(sum(case when sender = ${source} then cost else -value end), 0)::text from costs
        where sender = ${source} or (kind = 'top-up' and to_address = ${source})) as source,
      (select coalesce(sum(cost), 0)::text from costs where sender = ${master}) as master`,
  )
}

/** Those of these transfers of which there is something to tell: a block says what became of them, or that a bridge has begun. */
export async function listDecided(db: Queryable, transferIds: readonly TransferId[]): Promise<TransferId[]> {
  const rows = await db.many(
    z.object({ id: id('wtx') }),
    sql`
    select id from transfers where id = any(${transferIds}::text[])
      and (status <> 'pending' or reason is not null or (route = 'partner-bridge' and left_at is not null))`,
  )
  return rows.map((row) => row.id)
}

/** Whether a step after this one has its transaction. */
export async function hasLaterStep(tx: Tx, { transferId, position }: StepRow): Promise<boolean> {
  const row = await tx.one(
    z.object({ has: z.boolean() }),
    sql`
    select exists (select 1 from transfer_steps
      where transfer_id = ${transferId} and position > ${position} and transaction_id is not null) as has`,
  )
  return row.has
}

export async function markSent(tx: Tx, transferId: TransferId, hash: string): Promise<void> {
  await tx.run(sql`update transfers set tx_hash = ${hash} where id = ${transferId} and ended_at is null`)
}

/** A block shows that the money moved; it may still be undone. */
export async function markConfirmed(
  tx: Tx,
  transferId: TransferId,
  seen: { readonly hash: string; readonly rawReceived: bigint | undefined; readonly now: Date },
): Promise<void> {
  await tx.run(sql`
    update transfers set status = 'confirmed', reason = null, tx_hash = ${seen.hash}, confirmed_at = ${seen.now}, left_at = ${seen.now},
      raw_received = ${seen.rawReceived?.toString() ?? null}
    where id = ${transferId} and ended_at is null`)
}

/** What a block showed is no longer so, or shows a failure that may still be undone. */
export async function markPending(tx: Tx, transferId: TransferId, reason: string | null): Promise<void> {
  await tx.run(sql`
    update transfers set status = 'pending', reason = ${reason}, confirmed_at = null, left_at = null, look_at = null where id = ${transferId} and ended_at is null`)
}

export async function markEnded(
  tx: Tx,
  transferId: TransferId,
  end: { readonly status: 'confirmed' | 'failed'; readonly reason: string | null; readonly now: Date },
): Promise<void> {
  await tx.run(sql`
    update transfers set status = ${end.status}, reason = ${end.reason}, ended_at = ${end.now}, look_at = null
    where id = ${transferId} and ended_at is null`)
}

export type Answered = NonNullable<TransferRow['answered']>

/** What the first answer said; a later one changes nothing, since nobody knows which of them arrived. */
export async function markAnswered(tx: Tx, transferId: TransferId, answered: Answered): Promise<void> {
  await tx.run(sql`update transfers set answered = ${answered} where id = ${transferId} and answered is null`)
}

export async function markTold(tx: Tx, transferId: TransferId, eventId: EventId): Promise<void> {
  await tx.run(sql`update transfers set event_id = ${eventId} where id = ${transferId} and event_id is null`)
}

/** Transfers that ended before this instant while nobody had been answered: their caller's process died. */
export async function listUnanswered(db: Queryable, before: Date): Promise<TransferId[]> {
  const rows = await db.many(
    z.object({ id: id('wtx') }),
    sql`
    select id from transfers where ended_at < ${before} and event_id is null and answered is null and purpose = 'transfer'
    order by ended_at limit 100`,
  )
  return rows.map((row) => row.id)
}
