import type { Address } from '@purser/protocol'
import { z } from 'zod'
import { type Queryable, sql, type Tx } from '../../../platform/db/db.ts'
import { StoredAddress } from '../store.ts'
import { tempoSweepPurpose } from './tempo-handler.ts'

const Lane = z.object({ address: StoredAddress, nextNonce: z.bigint(), isPaying: z.boolean() })

/**
 * The nonces of accounts from which on whatever they send came after this was read, and whether they have sent, or are about to, what no
 * block shows yet. Sweeps are not counted: of a token a child has one at a time, and one of another token draws on nothing of this.
 */
export function listLanes(
  db: Queryable,
  network: string,
  accounts: readonly Address[],
): Promise<z.output<typeof Lane>[]> {
  return db.many(
    Lane,
    sql`
    select address,
      coalesce((select max(nonce) + 1 from chain_transactions where network = ${network} and sender = address), 0) as next_nonce,
      exists (select from chain_transactions
        where network = ${network} and sender = address and status in ('planned', 'sent') and purpose <> ${tempoSweepPurpose}) as is_paying
    from unnest(${accounts}::text[]) as given (address)`,
  )
}

/** Those of the accounts that were given a nonce since, but for sweeps. */
export async function listPaidSince(
  db: Queryable,
  network: string,
  accounts: readonly { readonly address: Address; readonly nextNonce: bigint }[],
): Promise<ReadonlySet<Address>> {
  const rows = await db.many(
    z.object({ address: StoredAddress }),
    sql`
    select address
    from unnest(${accounts.map(({ address }) => address)}::text[], ${accounts.map(({ nextNonce }) => nextNonce)}::bigint[]) as given (address, next_nonce)
    where exists (select from chain_transactions
      where network = ${network} and sender = address and nonce >= next_nonce and purpose <> ${tempoSweepPurpose})`,
  )
  return new Set(rows.map(({ address }) => address))
}

/**
 * Lets one sweep at a time be stored under the locks of its children: each holds up to a thousand, and PostgreSQL has room for some
 * thousands of locks of everybody's.
 */
export async function lockStoring(tx: Tx): Promise<void> {
  await tx.run(sql`select pg_advisory_xact_lock(hashtextextended('wallets.sweeps', 0))`)
}
