import { fencedTx } from '../../platform/leases/store.ts'
import { notifyReplaced, notifySent, toLaneTransaction } from './handlers.ts'
import type { LaneParts } from './parts.ts'
import { insertFoundAttempt, listKnownHashes } from './replaced-store.ts'
import { type AttemptRow, findCallData, lockTransaction, markFinal, type TransactionRow } from './store.ts'

/**
 * What becomes of a transaction whose nonce a transaction used that is not among its signed forms. After a restore that is most often a form that
 * the database lost: where the chain has its calls, under this nonce or another, that transaction is taken for one of its forms and followed like
 * any other. Else it can never be mined, and its feature is notified. Throws, and is tried again, while no node can search.
 */
export async function resolveReplaced(
  parts: LaneParts,
  transaction: TransactionRow,
  latest: AttemptRow,
): Promise<void> {
  const { deps, chain, handlers, held } = parts
  const { sender, nonce, network, toAddress: to, value, createdAt: since } = transaction
  const { data, before } = await findCallData(deps.db, transaction.id)
  const call = { sender, nonce, calls: [...before, { to, data, value }] }
  const isOurs = (hashes: readonly string[]) => listKnownHashes(deps.db, network, hashes)
  const hash = await chain.findSameCall(call, { since, isOurs })
  const facts = { network, sender, nonce: nonce.toString(), transactionId: transaction.id, hash }
  await fencedTx(deps.db, held, async (tx) => {
    const locked = await lockTransaction(tx, held, transaction.id)
    if (locked?.status !== 'sent') return
    if (hash !== undefined) {
      deps.log.warn(facts, 'a transaction was mined in a form that the database does not have')
      if (await insertFoundAttempt(tx, latest, hash)) await notifySent(handlers, tx, [toLaneTransaction(locked, hash)])
      return
    }
    deps.log.error(facts, 'a nonce was used outside its lane, and the call that it was for is not found on chain')
    await markFinal(tx, transaction.id)
    await notifyReplaced(handlers, tx, toLaneTransaction(locked, latest.hash))
  })
}
