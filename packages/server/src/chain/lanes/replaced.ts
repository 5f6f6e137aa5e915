import { fencedTx } from '../../platform/leases/store.ts'
import { notifyReplaced, notifySent, toLaneTransaction } from './handlers.ts'
import type { LaneParts } from './parts.ts'
import { insertFoundAttempt, listKnownHashes } from './replaced-store.ts'
import { type AttemptRow, findCallData, lockTransaction, markFinal, type TransactionRow } from './store.ts'

/**
 * Resolves a transaction whose nonce was used by a transaction that is not one of its attempts. After a restore that is usually an attempt that the
 * database lost. When the chain has a transaction with the same calls, at this nonce or another, it is stored as an attempt and followed as usual.
 * Otherwise the transaction can never be mined, and its handler is called. Throws while no node can search; the caller retries.
 */
export async function resolveReplaced(
  parts: LaneParts,
  transaction: TransactionRow,
  latest: AttemptRow,
): Promise<void> {
  const { deps, chain, handlers, leased } = parts
  const { sender, nonce, network, toAddress: to, value, createdAt: since } = transaction
  const { data, before } = await findCallData(deps.db, transaction.id)
  const call = { sender, nonce, calls: [...before, { to, data, value }] }
  const isOurs = (hashes: readonly string[]) => listKnownHashes(deps.db, network, hashes)
  const hash = await chain.findSameCall(call, { since, isOurs })
  const details = { network, sender, nonce: nonce.toString(), transactionId: transaction.id, hash }
  await fencedTx(deps.db, leased, async (tx) => {
    const locked = await lockTransaction(tx, leased, transaction.id)
    if (locked?.status !== 'sent') return
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
