import { isTempo } from '@purser/protocol'
import { z } from 'zod'
import type { Tenant } from '../../platform/ctx.ts'
import { StoredBigInt, StoredHex } from '../../platform/db/columns.ts'
import { type Db, sql, type Tx } from '../../platform/db/db.ts'
import { idIn } from '../../platform/db/page.ts'
import { id, type PaymentId } from '../../platform/ids.ts'
import { type EvictionQuery, selectEvictable } from './eviction-store.ts'
import { Counted, counted } from './settlement-store.ts'
import type { NewPayment } from './store.ts'

/** A payment that no longer counts in the month, while its transaction may still be included. */
export interface UncountedPayment {
  readonly id: PaymentId
  /** The reason why the nodes refused the transaction; null if they took it. */
  readonly reason: string | null
}

const FreedRow = Counted.extend({ hadPlace: z.boolean(), gasReservedNanoUsd: StoredBigInt })

/**
 * Marks pending payments as not counted in the month: they reserve nothing, and the chain is read until their end. Returns the rows that changed, with
 * what they reserved.
 */
export function markUncounted(tx: Tx, given: readonly UncountedPayment[]): Promise<z.output<typeof FreedRow>[]> {
  const ids = given.map(({ id }) => id)
  return tx.many(
    FreedRow,
    sql`
    with given as (
      select * from unnest(${ids}::text[], ${given.map(({ reason }) => reason)}::text[]) as row (id, reason)
    ), previous as materialized (
      select payments.id, given.reason, has_place as had_place, gas_reserved_nano_usd from payments join given using (id)
      where ${idIn(sql`payments.id`, ids)} and status is not distinct from 'settling' and (has_place or failure_reason is null and given.reason is not null)
      order by payments.id for no key update of payments
    )
    update payments set failure_reason = coalesce(failure_reason, previous.reason), has_place = false, gas_reserved_nano_usd = 0
    from previous where payments.id = previous.id and ${idIn(sql`payments.id`, ids)}
    returning ${counted}, previous.had_place, previous.gas_reserved_nano_usd`,
  )
}

const UnminedRow = z.object({
  id: id('pay'),
  network: z.string(),
  txHash: StoredHex,
})
export type UnminedRow = z.output<typeof UnminedRow>

const unmined = { isOn: isTempo, isOpen: sql`p.status = 'settling' and p.tx_hash is not null` }

/** Returns payments that count toward the exhausted quota and whose transactions by their payers have no recorded outcome, the oldest first. */
export function listUnmined(
  db: Db,
  tenant: Tenant,
  payment: Pick<NewPayment, 'network' | 'createdAt'>,
  wanted: EvictionQuery,
): Promise<UnminedRow[]> {
  const statement = selectEvictable(tenant, payment, wanted, unmined)
  return db.tx((tx) => tx.many(UnminedRow, statement), { readsInOrder: true })
}
