import type { Tx } from '../../platform/db/db.ts'
import type { LaneHandler, LaneTransaction, MinedTransaction } from './port.ts'
import type { TransactionRow } from './store.ts'

/** A stored transaction in the form that handlers receive, with this hash. */
export function toLaneTransaction(
  { id, network, purpose, nonce }: TransactionRow,
  hash: LaneTransaction['hash'],
): LaneTransaction {
  return { id, network, purpose, nonce, hash }
}

export type Handlers = ReadonlyMap<string, LaneHandler>

/** Throws for a purpose without a handler. Its transactions stay unchanged until a process with a handler follows them. */
function handlerOf(handlers: Handlers, purpose: string): LaneHandler {
  const handler = handlers.get(purpose)
  if (handler === undefined) throw new Error(`no handler for transactions of ${purpose}`)
  return handler
}

/** Calls the handlers of these transactions in the database transaction that stores the signed bytes. */
export async function notifySent(handlers: Handlers, tx: Tx, sent: readonly LaneTransaction[]): Promise<void> {
  for (const [purpose, some] of Map.groupBy(sent, (one) => one.purpose)) await handlers.get(purpose)?.onSent?.(tx, some)
}

export async function notifyReorganised(handlers: Handlers, tx: Tx, gone: LaneTransaction): Promise<void> {
  await handlers.get(gone.purpose)?.onReorganised?.(tx, [gone])
}

export async function notifyReplaced(handlers: Handlers, tx: Tx, replaced: LaneTransaction): Promise<void> {
  await handlerOf(handlers, replaced.purpose).onReplaced(tx, [replaced])
}

/** `isNews`: the handler was not called for that block yet. */
interface Observed extends MinedTransaction {
  readonly isNews: boolean
  readonly isFinal: boolean
}

/** Calls the handlers of mined transactions: first for new blocks, then for transactions that are final. */
export async function notifyMined(handlers: Handlers, tx: Tx, mined: readonly Observed[]): Promise<void> {
  for (const [purpose, some] of Map.groupBy(mined, ({ transaction }) => transaction.purpose)) {
    const handler = handlerOf(handlers, purpose)
    const atOnce = handler.onMinedAndFinal === undefined ? [] : some.filter(({ isNews, isFinal }) => isNews && isFinal)
    const others = some.filter((one) => !atOnce.includes(one))
    const [news, final] = [others.filter(({ isNews }) => isNews), others.filter(({ isFinal }) => isFinal)]
    if (news.length > 0) await handler.onMined?.(tx, news)
    if (atOnce.length > 0) await handler.onMinedAndFinal?.(tx, atOnce)
    if (final.length > 0) await handler.onFinal(tx, final)
  }
}
