import type { CredentialDraft } from '@purser/protocol'
import { z } from 'zod'
import type { Tenant } from '../../../platform/ctx.ts'
import { StoredHex } from '../../../platform/db/columns.ts'
import { breaksUnique, type Queryable, type Sql, sql, type Tx } from '../../../platform/db/db.ts'
import { id } from '../../../platform/ids.ts'
import { isNonceTaken, relays } from '../../relayer/index.ts'
import type { TransferId } from '../store.ts'
import { payingMethods } from './schema.ts'

const Authorization = z.object({
  from: StoredHex,
  to: StoredHex,
  value: z.string(),
  validAfter: z.string(),
  validBefore: z.string(),
  nonce: StoredHex,
})
const Draft = z
  .string()
  .transform((text) => JSON.parse(text))
  .pipe(z.looseObject({ authorization: Authorization }))
  .transform((draft) => draft as unknown as CredentialDraft)

const WalletPaymentRow = z.object({
  transferId: id('wtx'),
  method: z.enum(payingMethods),
  draft: Draft.nullable(),
  validBefore: z.date().nullable(),
  signature: z.instanceof(Uint8Array).nullable(),
  payUntil: z.date().nullable(),
  fetchUntil: z.date().nullable(),
  outcome: z.enum(['paid', 'refused', 'unknown']).nullable(),
  responseStatus: z.number().nullable(),
})
export type WalletPaymentRow = z.output<typeof WalletPaymentRow>

/** The message of a payment, complete before it is signed. */
export interface StoredMessage {
  readonly challengeKey: string | undefined
  readonly draft: CredentialDraft
  readonly validBefore: Date
  /** Until when this process may wait for the seller; undefined if the caller sends the credential itself. */
  readonly fetchUntil: Date | undefined
}

export interface NewPaymentRow {
  readonly transferId: TransferId
  readonly method: WalletPaymentRow['method']
  /** Undefined while it waits for an approval. */
  readonly message: StoredMessage | undefined
}

/** Stores the payment of a transfer. Throws an error for which `isChallengeTaken` is true if another payment is for the same challenge. */
export async function insertPayment(
  tx: Tx,
  tenant: Tenant,
  { transferId, method, message }: NewPaymentRow,
): Promise<void> {
  await tx.run(sql`
    insert into wallet_payments (transfer_id, organisation_id, environment, method, challenge_key, draft, valid_before, fetch_until)
    values (${transferId}, ${tenant.organisationId}, ${tenant.environment}, ${method}, ${message?.challengeKey ?? null},
      ${message === undefined ? null : JSON.stringify(message.draft)}, ${message?.validBefore ?? null}, ${message?.fetchUntil ?? null})`)
}

/** Gives an approved payment its message. As `insertPayment`, it may find the challenge taken. */
export async function setMessage(
  tx: Tx,
  { transferId, method, message }: NewPaymentRow & { readonly message: StoredMessage },
): Promise<void> {
  await tx.run(sql`
    update wallet_payments set method = ${method}, challenge_key = ${message.challengeKey ?? null}, draft = ${JSON.stringify(message.draft)},
      valid_before = ${message.validBefore}, fetch_until = ${message.fetchUntil ?? null}, pay_until = null
    where transfer_id = ${transferId} and draft is null`)
}

/** Whether a message was not stored because a payment for its challenge, or with its nonce, exists. */
export function isChallengeTaken(error: unknown): boolean {
  return breaksUnique(error, 'wallet_payments_by_challenge') || isNonceTaken(error)
}

/** The payment of this tenant for a challenge. */
export async function findPaymentOf(db: Queryable, tenant: Tenant, challengeKey: string): Promise<string | undefined> {
  const row = await db.maybeOne(
    z.object({ transferId: z.string() }),
    sql`
    select transfer_id from wallet_payments
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and challenge_key = ${challengeKey}`,
  )
  return row?.transferId
}

const columns = sql`transfer_id, method, draft, valid_before, signature, pay_until, fetch_until, outcome, response_status`

export function findPayment(
  db: Queryable,
  tenant: Tenant,
  transferId: TransferId,
): Promise<WalletPaymentRow | undefined> {
  return db.maybeOne(
    WalletPaymentRow,
    sql`
    select ${columns} from wallet_payments
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and transfer_id = ${transferId}`,
  )
}

/** Locks the row; the caller has locked its transfer. */
export function lockPayment(tx: Tx, transferId: TransferId): Promise<WalletPaymentRow> {
  return tx.one(
    WalletPaymentRow,
    sql`select ${columns} from wallet_payments where transfer_id = ${transferId} for update`,
  )
}

/** Stores a signature unless the payment has one; returns the one that it has. */
export async function storeSignatureOnce(
  db: Queryable,
  transferId: TransferId,
  signature: Uint8Array,
): Promise<Uint8Array> {
  const row = await db.one(
    z.object({ signature: z.instanceof(Uint8Array) }),
    sql`
    update wallet_payments set signature = coalesce(signature, ${Buffer.from(signature)}) where transfer_id = ${transferId} returning signature`,
  )
  return row.signature
}

/** Stores the outcome that the seller's response reports, once. */
export async function keepOutcome(
  db: Queryable,
  transferId: TransferId,
  {
    outcome,
    status,
  }: { readonly outcome: NonNullable<WalletPaymentRow['outcome']>; readonly status: number | undefined },
): Promise<void> {
  await db.run(sql`
    update wallet_payments set outcome = ${outcome}, response_status = ${status ?? null} where transfer_id = ${transferId} and outcome is null`)
}

/** Permits a fresh 402 to be paid with an approved payment until this instant. */
export async function setPayUntil(tx: Tx, transferId: TransferId, until: Date): Promise<void> {
  await tx.run(sql`update wallet_payments set pay_until = ${until} where transfer_id = ${transferId} and draft is null`)
}

/** The time at which an approved payment without a fresh 402 is ended: its own, or later if it could not be ended then. */
const endsAt = sql`coalesce(end_after, pay_until)`

/** A condition: whether `listUnused` would return any. */
export function isAnyUnused(now: Date): Sql {
  return sql`(select ${endsAt} from wallet_payments where draft is null and pay_until is not null and ${endsAt} <= ${now} order by ${endsAt} limit 1) is not null`
}

const UnusedRow = z.object({ transferId: id('wtx') })

/** Payments that were approved and for which no fresh 402 came in time, of any tenant, in the order in which they are due to be ended. */
export async function listUnused(db: Queryable, now: Date, limit: number): Promise<TransferId[]> {
  const rows = await db.many(
    UnusedRow,
    sql`
    select transfer_id from wallet_payments where draft is null and pay_until is not null and ${endsAt} <= ${now} order by ${endsAt} limit ${limit}`,
  )
  return rows.map((row) => row.transferId)
}

/** Postpones the end of a payment that could not be ended: as long again as it is overdue, at least 20 seconds and at most an hour. */
export async function postponeEnd(db: Queryable, transferId: TransferId, now: Date): Promise<void> {
  await db.run(sql`
    update wallet_payments
    set end_after = ${now}::timestamptz + least(greatest(${now}::timestamptz - pay_until, interval '20 seconds'), interval '1 hour')
    where transfer_id = ${transferId} and draft is null and pay_until is not null`)
}

/** Marks that no further 402 can be paid with a payment. */
export async function clearPayUntil(tx: Tx, transferId: TransferId): Promise<void> {
  await tx.run(sql`update wallet_payments set pay_until = null where transfer_id = ${transferId}`)
}

export const paymentPurpose = 'transfers.payments'

/**
 * Reads the chain for a payment until its nonce is used or it has expired. The payload has no signature: nobody here sends it.
 */
export function watchPayment(
  tx: Tx,
  tenant: Tenant,
  watched: {
    readonly transferId: TransferId
    readonly network: string
    readonly token: string
    readonly authorization: CredentialDraft['authorization']
    readonly validBefore: Date
    readonly createdAt: Date
  },
): Promise<void> {
  const { transferId, network, token, authorization, validBefore, createdAt } = watched
  const payload = {
    kind: 'eip3009',
    token,
    ...authorization,
    signature: { kind: 'bytes', signature: '0x' },
    deployment: null,
  }
  return relays.watch(
    tx,
    paymentPurpose,
    sql`
    select ${transferId}::text as subject_id, ${network}::text as network, ${tenant.organisationId}::text as organisation_id,
      ${tenant.environment}::text as environment, ${JSON.stringify(payload)}::jsonb as payload, ${validBefore}::timestamptz as valid_before,
      ${createdAt}::timestamptz as created_at`,
  )
}
