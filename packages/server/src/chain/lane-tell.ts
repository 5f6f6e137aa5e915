import type { Tx } from '../platform/db/db.ts'
import type { LaneKey, TransactionRow } from './lane-store.ts'
import type { LaneHandler, LaneTransaction, MinedTransaction } from './port.ts'

/** How a feature knows one of its transactions; the hash is added by who tells. */
export function told(lane: LaneKey, transaction: TransactionRow) {
  return { id: transaction.id, network: lane.network, purpose: transaction.purpose, nonce: transaction.nonce }
}

type Handlers = ReadonlyMap<string, LaneHandler>

export function handlerOf(handlers: Handlers, { purpose }: { readonly purpose: string }): LaneHandler {
  const handler = handlers.get(purpose)
  if (handler === undefined) throw new Error(`nobody is told about transactions for ${purpose}`)
  return handler
}

/** Tells the features whose transactions these are that their bytes are stored, in the database transaction that stores them. */
export async function tellSent(handlers: Handlers, tx: Tx, sent: readonly LaneTransaction[]): Promise<void> {
  for (const [purpose, some] of Map.groupBy(sent, (one) => one.purpose)) {
    const handler = handlers.get(purpose)
    if (handler?.several !== undefined) await handler.several.onSent(tx, some)
    else for (const transaction of some) await handler?.onSent?.(tx, transaction)
  }
}

/** The same of those that are in a block, or at its depth. */
export async function tellMined(
  { handlers }: { readonly handlers: Handlers },
  tx: Tx,
  mined: readonly MinedTransaction[],
  step: 'onMined' | 'onFinal',
): Promise<void> {
  for (const [purpose, some] of Map.groupBy(mined, ({ transaction }) => transaction.purpose)) {
    const handler = handlerOf(handlers, { purpose })
    if (handler.several !== undefined) await handler.several[step](tx, some)
    else for (const { transaction, receipt } of some) await handler[step]?.(tx, transaction, receipt)
  }
}
