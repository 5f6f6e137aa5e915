import type { Tx } from '../platform/db/db.ts'
import type { TransactionRow } from './lane-store.ts'
import type { LaneHandler, LaneTransaction, MinedTransaction } from './port.ts'

/** How a feature knows one of its transactions; the hash is added by who tells. */
export function told({ id, network, purpose, nonce }: TransactionRow) {
  return { id, network, purpose, nonce }
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

/** A transaction in a block; `isNews` where its feature has not been told of that block. */
interface Told extends MinedTransaction {
  readonly isNews: boolean
  readonly isFinal: boolean
}

/** The same of those that are in a block, or at its depth: first what is news of blocks, then what is final. */
export async function tellMined(
  { handlers }: { readonly handlers: Handlers },
  tx: Tx,
  mined: readonly Told[],
): Promise<void> {
  for (const [purpose, some] of Map.groupBy(mined, ({ transaction }) => transaction.purpose)) {
    const handler = handlerOf(handlers, { purpose })
    const atOnce = some.filter(({ isNews, isFinal }) => isNews && isFinal)
    const later = some.filter(({ isNews, isFinal }) => isNews !== isFinal)
    if (handler.several !== undefined) {
      const [news, final] = [later.filter(({ isNews }) => isNews), later.filter(({ isFinal }) => isFinal)]
      if (news.length > 0) await handler.several.onMined(tx, news)
      if (atOnce.length > 0) await handler.several.onMinedAndFinal(tx, atOnce)
      if (final.length > 0) await handler.several.onFinal(tx, final)
      continue
    }
    for (const { transaction, receipt } of some.filter(({ isNews }) => isNews))
      await handler.onMined?.(tx, transaction, receipt)
    for (const { transaction, receipt } of some.filter(({ isFinal }) => isFinal))
      await handler.onFinal(tx, transaction, receipt)
  }
}
