import type { Address } from '@purser/protocol'
import type { Deps } from '../../platform/ctx.ts'
import type { Tx } from '../../platform/db/db.ts'
import { inParallel } from '../../platform/in-parallel.ts'
import type { LeaseSet } from '../../platform/leases/store.ts'
import type { Chain, FeeSponsor } from '../port.ts'
import type { LaneHandler, LaneSigner, LaneTransaction, MinedTransaction } from './port.ts'
import type { TransactionRow } from './store.ts'

/** Dependencies of one turn over the lanes of a network. */
export interface LaneParts {
  readonly deps: Pick<Deps, 'db' | 'clock' | 'log' | 'metrics' | 'witness'>
  readonly chain: Chain
  /** The signer of a resumed account. */
  readonly signerOf: (account: Address) => LaneSigner
  /** Pays the fees of sponsored transactions. Without a sponsor, those are not sent. */
  readonly sponsor?: FeeSponsor | undefined
  readonly handlers: Handlers
  /** The leases under which the turn began. Every write checks them; after losing them the turn can only rebroadcast stored bytes. */
  readonly leased: LeaseSet
  /** When a quorum first found a transaction’s nonce used without a receipt of ours: milliseconds by transaction id. */
  readonly usedSince: Map<string, number>
}

/** Accounts that are processed in parallel after their batch failed. */
const aloneAtOnce = 8

/**
 * Processes accounts in one batch. When the batch fails, processes each account separately, so that one does not block others. Throws only when a
 * single account was given and failed.
 */
export async function isolateFailures<T>(
  parts: LaneParts,
  senders: readonly Address[],
  work: (senders: readonly Address[]) => Promise<readonly T[]>,
): Promise<readonly T[]> {
  try {
    return await work(senders)
  } catch (error) {
    if (senders.length === 1) throw error
    return (await inParallel(senders, aloneAtOnce, (sender) => work([sender]).catch(logStalled(parts, sender)))).flat()
  }
}

/** Logs that an account's lane failed. The next turn retries. */
export function logStalled({ deps, chain }: LaneParts, sender: Address) {
  return (error: unknown): [] => {
    const details = { err: error, network: chain.network.name, sender }
    deps.log.warn(details, 'the lane of an account failed; will retry')
    return []
  }
}

/** Logs that one transaction could not be followed. The next turn retries. */
export function logNotFollowed({ deps }: Pick<LaneParts, 'deps'>, { id }: TransactionRow, error: unknown): void {
  deps.log.error({ err: error, transactionId: id }, 'a transaction could not be followed; will retry')
}

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
