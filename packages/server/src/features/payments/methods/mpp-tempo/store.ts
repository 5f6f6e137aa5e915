import { z } from 'zod'
import type { Tenant } from '../../../../platform/ctx.ts'
import { type Queryable, type Sql, sql } from '../../../../platform/db/db.ts'
import { onAnyOf } from '../../../../platform/db/due-checks.ts'
import { idIs } from '../../../../platform/db/page.ts'
import { id, type PaymentId } from '../../../../platform/ids.ts'
import { StoredTempoTransaction } from '../../store.ts'

const HexText = z.templateLiteral(['0x', z.string()])

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
  asset: HexText,
  rawAmount: z.string().transform((text) => BigInt(text)),
  payTo: HexText,
  payer: z.string(),
  settlement: StoredTempoTransaction,
  txHash: HexText,
  settlingAt: z.date(),
  failureReason: z.string().nullable(),
})
export type SentRow = z.output<typeof SentRow>

const columns = sql`id, organisation_id, environment, wallet_id, network, chain, token, decimals, asset, raw_amount, pay_to, payer, settlement,
  tx_hash, settling_at, failure_reason`

const isOpen = sql`status = 'settling' and settlement ->> 'kind' = 'tempo'`

/** A condition: whether any payment of the networks is open. */
export function isAnySent(networks: readonly string[]): Sql {
  return onAnyOf(networks, sql`select id from payments where network = n.network and ${isOpen} order by id limit 1`)
}

/** Returns a page of open payments of one network, ordered by id. */
export function listSent(db: Queryable, network: string, page: { limit: number; after: string }): Promise<SentRow[]> {
  return db.many(
    SentRow,
    sql`
    select ${columns} from payments
    where network = ${network} and ${isOpen} and id > ${page.after} order by id limit ${page.limit}`,
  )
}

const OpenHashRow = SentRow.pick({ id: true, txHash: true })

/** Returns a payer's open payments of one token and their transactions, over all organizations. */
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

/** Records that a node refused it: it is not sent again, and ends when the chain shows that it cannot be included any more. */
export async function markRefused(db: Queryable, paymentId: PaymentId, reason: string): Promise<void> {
  await db.run(
    sql`update payments set failure_reason = ${reason} where ${idIs(paymentId)} and status is not distinct from 'settling'`,
  )
}

/** Whether the challenge, or the claim if there is one, has already bought something, for any organization. */
export async function isUsed(db: Queryable, challengeId: string, claimKey: string | null): Promise<boolean> {
  const { is } = await db.one(
    z.object({ is: z.boolean() }),
    sql`
    select exists (select from payment_claims where challenge_hash = claim_hash(${challengeId}))
      or exists (select from payment_claims where claim_hash = claim_hash(${claimKey}::text)) as is`,
  )
  return is
}
