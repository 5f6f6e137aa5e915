import { z } from 'zod'
import type { ChainTransactionId } from '../../../chain/port.ts'
import { type Queryable, sql, type Tx } from '../../../platform/db/db.ts'
import { id } from '../../../platform/ids.ts'
import type { TransferId } from '../store.ts'

const Raw = z.string().transform((text) => BigInt(text))
const Bytes = z.instanceof(Uint8Array)
const HexText = z.templateLiteral(['0x', z.string()])

/** A transfer's authorisation with what it moves. The settler's lane is the operator's, so these work for all tenants at once. */
export const AuthorisedRow = z.object({
  transferId: id('wtx'),
  organisationId: id('org'),
  environment: z.enum(['test', 'live']),
  network: z.string(),
  asset: HexText,
  fromAddress: HexText,
  toAddress: HexText,
  rawAmount: Raw,
  nonce: Bytes,
  validBefore: z.date(),
  signature: Bytes.nullable(),
  status: z.enum(['planned', 'signed', 'sent', 'ended']),
  attempt: z.number(),
  unresolved: z.boolean(),
  createdAt: z.date(),
})
export type AuthorisedRow = z.output<typeof AuthorisedRow>

/** One whose child has signed. */
export type SignedRow = AuthorisedRow & { readonly signature: Uint8Array }

const rows = sql`select a.transfer_id, t.organisation_id, t.environment, a.network, a.asset, a.from_address, t.to_address, t.raw_amount::text as raw_amount,
    a.nonce, a.valid_before, a.signature, a.status, a.attempt, a.unresolved, a.created_at
  from transfer_authorisations a join transfers t on t.id = a.transfer_id`

/** Stores what a child is to sign, beside its transfer; the caller holds the lock of the wallet that pays. */
export async function insertAuthorisation(
  tx: Tx,
  made: Pick<AuthorisedRow, 'transferId' | 'network' | 'asset' | 'fromAddress' | 'validBefore' | 'createdAt'> & {
    readonly nonce: Uint8Array
  },
): Promise<void> {
  await tx.run(sql`
    insert into transfer_authorisations (transfer_id, network, asset, from_address, nonce, valid_before, status, created_at)
    values (${made.transferId}, ${made.network}, ${made.asset}, ${made.fromAddress}, ${made.nonce}, ${made.validBefore}, 'planned', ${made.createdAt})`)
}

/** The numbers of these accounts' newest authorisations; whatever is given one later came after. An account that has none is not there. */
export function listLastNumbers(
  db: Queryable,
  accounts: readonly { readonly network: string; readonly address: string }[],
): Promise<{ address: string; number: bigint }[]> {
  return db.many(
    z.object({ address: z.string(), number: z.bigint() }),
    sql`
    select given.address, (select a.number from transfer_authorisations a
      where a.network = given.network and a.from_address = given.address order by a.number desc limit 1) as number
    from unnest(${accounts.map(({ network }) => network)}::text[], ${accounts.map(({ address }) => address)}::text[]) as given (network, address)
    where exists (select from transfer_authorisations a where a.network = given.network and a.from_address = given.address)`,
  )
}

/** The networks on which any wait to be signed or sent. */
export async function listWaitingNetworks(db: Queryable): Promise<string[]> {
  const waiting = await db.many(
    z.object({ network: z.string() }),
    sql`select distinct network from transfer_authorisations where status in ('planned', 'signed')`,
  )
  return waiting.map(({ network }) => network)
}

/** Those of a network that nobody has signed for yet, oldest first. */
export function listUnsigned(db: Queryable, network: string, most: number): Promise<AuthorisedRow[]> {
  return db.many(
    AuthorisedRow,
    sql`${rows} where a.network = ${network} and a.status = 'planned' order by a.created_at, a.number limit ${most}`,
  )
}

/** Stores an authorisation before it can be sent anywhere; one that is there already stays. */
export async function markSigned(db: Queryable, transferId: TransferId, signature: Uint8Array): Promise<void> {
  await db.run(sql`
    update transfer_authorisations set status = 'signed', signature = ${signature} where transfer_id = ${transferId} and status = 'planned'`)
}

/** Takes signed ones of a network that end after this instant, oldest first; another process that looks meanwhile gets others. */
export async function lockSigned(
  tx: Tx,
  network: string,
  { most, endingAfter }: { readonly most: number; readonly endingAfter: Date },
): Promise<SignedRow[]> {
  const found = await tx.many(
    AuthorisedRow,
    sql`
    ${rows} where a.network = ${network} and a.status = 'signed' and a.valid_before > ${endingAfter}
    order by a.created_at, a.number limit ${most} for update of a skip locked`,
  )
  return found.flatMap((row) => (row.signature === null ? [] : [{ ...row, signature: row.signature }]))
}

/** Ties authorisations to the transaction that carries them. */
export async function assignTransaction(
  tx: Tx,
  transferIds: readonly TransferId[],
  transactionId: ChainTransactionId,
): Promise<void> {
  await tx.run(sql`
    update transfer_authorisations set status = 'sent', chain_transaction_id = ${transactionId}, attempt = attempt + 1
    where transfer_id = any(${transferIds}::text[])`)
}

/** Those that a transaction carries and that it has not been seen to leave. */
export function listInTransaction(tx: Queryable, transactionId: ChainTransactionId): Promise<AuthorisedRow[]> {
  return tx.many(
    AuthorisedRow,
    sql`
    ${rows} where a.chain_transaction_id = ${transactionId} and a.status = 'sent' and not a.unresolved
    order by a.transfer_id`,
  )
}

/** Their transaction is over without them, so its hash says nothing of them any more and the chain is asked. */
export async function markUnresolved(tx: Tx, transferIds: readonly TransferId[], now: Date): Promise<void> {
  if (transferIds.length === 0) return
  await tx.run(sql`
    update transfer_authorisations set unresolved = true, look_at = ${now} where status = 'sent' and transfer_id = any(${transferIds}::text[])`)
  await tx.run(sql`update transfers set tx_hash = null where ended_at is null and id = any(${transferIds}::text[])`)
}

/** Those of which the chain must be asked: their transaction is over without them, or their end passed while they waited for one. */
export function listToAsk(db: Queryable, now: Date, most: number): Promise<AuthorisedRow[]> {
  return db.many(
    AuthorisedRow,
    sql`
    ${rows} where (a.unresolved and a.look_at <= ${now})
      or (a.status in ('planned', 'signed') and a.valid_before <= ${now} and (a.look_at is null or a.look_at <= ${now}))
    order by a.look_at nulls first limit ${most}`,
  )
}

/** Holds one, as it stands now. */
export function lockAuthorisation(tx: Tx, transferId: TransferId): Promise<AuthorisedRow> {
  return tx.one(AuthorisedRow, sql`${rows} where a.transfer_id = ${transferId} for update of a`)
}

export async function setLookAt(db: Queryable, transferId: TransferId, lookAt: Date): Promise<void> {
  await db.run(sql`
    update transfer_authorisations set look_at = ${lookAt} where transfer_id = ${transferId} and status <> 'ended'`)
}

/** Lets one whose transaction did not carry it be sent again: its authorisation is still good and unused. */
export async function markWaitingAgain(tx: Tx, transferId: TransferId): Promise<void> {
  await tx.run(sql`
    update transfer_authorisations set status = 'signed', unresolved = false, chain_transaction_id = null, look_at = null
    where transfer_id = ${transferId} and status = 'sent' and unresolved`)
}

/** Their transfers have ended; nothing is sent for them any more. */
export async function markEnded(tx: Tx, transferIds: readonly TransferId[]): Promise<void> {
  if (transferIds.length === 0) return
  await tx.run(sql`
    update transfer_authorisations set status = 'ended', unresolved = false, look_at = null where transfer_id = any(${transferIds}::text[])`)
}
