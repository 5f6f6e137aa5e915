import { z } from 'zod'
import { sql, type Tx } from '../../platform/db/db.ts'
import { id } from '../../platform/ids.ts'
import type { TransferPlan } from './ports.ts'
import type { TransferId } from './store.ts'

interface Paying {
  readonly transferId: TransferId
  readonly plan: Pick<TransferPlan, 'quote'>
}

/**
 * Assigns the partner's orders to the transfers that pay for them. Returns the transfers whose order another transfer has, whether or not that one
 * paid: a partner fills an order once, and would keep a second payment.
 */
export async function takeOrders(tx: Tx, paying: readonly Paying[]): Promise<ReadonlySet<TransferId>> {
  const given = paying.flatMap(({ transferId, plan: { quote } }) =>
    quote?.orderId === undefined ? [] : [{ transferId, orderId: `${quote.partner} ${quote.orderId}` }],
  )
  if (given.length === 0) return new Set()
  const orderIds = given.map(({ orderId }) => orderId)
  await tx.run(sql`
    insert into partner_orders (order_id, transfer_id)
    select order_id, transfer_id from unnest(${orderIds}::text[], ${given.map(({ transferId }) => transferId)}::text[]) as given (order_id, transfer_id)
    order by order_id
    on conflict (order_id) do nothing`)
  const rows = await tx.many(
    z.object({ orderId: z.string(), transferId: id('wtx') }),
    sql`select order_id, transfer_id from partner_orders where order_id = any(${orderIds}::text[])`,
  )
  const owners = new Map(rows.map(({ orderId, transferId }) => [orderId, transferId]))
  return new Set(given.flatMap(({ orderId, transferId }) => (owners.get(orderId) === transferId ? [] : [transferId])))
}
