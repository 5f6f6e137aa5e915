import type { Tx } from '../../platform/db/db.ts'
import { fencedTx } from '../../platform/leases/store.ts'
import type { Handlers, LaneHandler, LaneTransaction } from './port.ts'
import { insertFoundAttempt, listKnownHashes, markFinal } from './recovery-store.ts'
import type { OneSearch } from './searches.ts'
import { type LaneParts, notifySent, toLaneTransaction } from './send.ts'
import { type AttemptRow, findCallData, type LaneTransactionRow, listAttempts, lockTransaction } from './store.ts'

/** Resolves a transaction whose nonce is lost. Does not reject: a search that fails is repeated once the nonce has been lost for that long again. */
export async function searchReplaced(
  parts: LaneParts,
  transaction: LaneTransactionRow,
  latest: AttemptRow,
  search: OneSearch,
): Promise<void> {
  try {
    await resolveReplaced(parts, transaction, latest, search)
  } catch (error) {
    if (!search.stopped.aborted) logNotFollowed(parts, transaction, error)
  } finally {
    parts.usedSince.delete(transaction.id)
  }
}

/**
 * Resolves a transaction whose nonce was used by a transaction that is not one of its attempts. After a restore that is usually an attempt that the
 * database lost. When the chain has a transaction with the same calls, at this nonce or another, it is stored as an attempt and followed as usual.
 * Otherwise the transaction can never be mined, and its handler is called. Nothing is stored when the transaction was mined during the search, or
 * when its nonce is not lost any more: its block or the other one may have been reorganized away. Throws while no node can search; the caller retries.
 */
async function resolveReplaced(
  parts: LaneParts,
  transaction: LaneTransactionRow,
  latest: AttemptRow,
  { stopped, wait }: OneSearch,
): Promise<void> {
  const { deps, chain, handlers, leased } = parts
  const { sender, nonce, network, toAddress: to, value, createdAt: since } = transaction
  const { data, before } = await findCallData(deps.db, transaction.id)
  const call = { sender, nonce, calls: [...before, { to, data, value }] }
  const isOurs = (hashes: readonly string[]) => listKnownHashes(deps.db, network, hashes)
  const hash = await chain.findSameCall(call, { since, isOurs, stopped, onRemaining: wait })
  if (hash === undefined && !(await isStillLost(parts, transaction))) return
  const details = { network, sender, nonce: nonce.toString(), transactionId: transaction.id, hash }
  await fencedTx(deps.db, leased, async (tx) => {
    const locked = await lockTransaction(tx, leased, transaction.id)
    if (locked?.status !== 'sent' || stopped.aborted) return
    if (hash !== undefined) {
      deps.log.warn(details, 'a transaction was mined as an attempt that the database does not have')
      if (await insertFoundAttempt(tx, latest, hash)) await notifySent(handlers, tx, [toLaneTransaction(locked, hash)])
      return
    }
    deps.log.error(details, 'a nonce was used outside its lane, and the planned call was not found on chain')
    await markFinal(tx, transaction.id)
    await notifyReplaced(handlers, tx, toLaneTransaction(locked, latest.hash))
  })
}

/** Whether a quorum finds the nonce used without a receipt of ours. The search may have taken minutes, in which blocks were reorganized away. */
async function isStillLost({ deps, chain }: LaneParts, { id, sender, nonce }: LaneTransactionRow): Promise<boolean> {
  const hashes = (await listAttempts(deps.db, [id])).map(({ hash }) => hash)
  return (await chain.areNoncesLost([{ sender, nonce, hashes }]))[0] === 'yes'
}

async function notifyReplaced(handlers: Handlers, tx: Tx, replaced: LaneTransaction): Promise<void> {
  await handlerOf(handlers, replaced.purpose).onReplaced(tx, [replaced])
}

/** Throws for a purpose without a handler. Its transactions stay unchanged until a process with a handler follows them. */
export function handlerOf(handlers: Handlers, purpose: string): LaneHandler {
  const handler = handlers.get(purpose)
  if (handler === undefined) throw new Error(`no handler for transactions of ${purpose}`)
  return handler
}

/** Logs that one transaction could not be followed. The next turn retries. */
export function logNotFollowed({ deps }: Pick<LaneParts, 'deps'>, { id }: LaneTransactionRow, error: unknown): void {
  deps.log.error({ err: error, transactionId: id }, 'a transaction could not be followed; retrying')
}
