import type { Verdict } from '../port.ts'
import type { Attempts, LaneParts } from './send.ts'
import type { TransactionRow } from './store.ts'

const lagMsMin = 120_000

/** Verdicts of a quorum on the nonces of transactions, by their ids. */
export type Losses = ReadonlyMap<string, Verdict>

/**
 * Queries the quorum once for all transactions that are missing though a node counts their nonces: in a burst, nodes count many before they have the
 * receipts. Leaves out those that it found lost not long ago.
 */
export async function lossesOf(
  parts: LaneParts,
  counted: readonly TransactionRow[],
  attempts: Attempts,
): Promise<Losses> {
  const due = counted.filter(({ id }) => !isRecentlyLost(parts, id))
  const questions = due.map(({ id, sender, nonce }) => {
    return { sender, nonce, hashes: (attempts.get(id) ?? []).map(({ hash }) => hash) }
  })
  const verdicts = await parts.chain.areNoncesLost(questions)
  return new Map(due.map(({ id }, index) => [id, verdicts[index] ?? 'undecided']))
}

/** Whether a quorum found the transaction lost, but not for longer than a node may lag. */
function isRecentlyLost({ usedSince, chain, deps }: LaneParts, id: string): boolean {
  const { blockTimeMs, confirmationDepth } = chain.network
  const since = usedSince.get(id)
  const lagMs = Math.max(lagMsMin, blockTimeMs * confirmationDepth * 4)
  return since !== undefined && deps.clock.now().getTime() - since <= lagMs
}

/**
 * Whether a quorum finds the nonce used without a receipt of ours, and found so before, longer ago than a node may lag. Counted from the first such
 * finding, not from the transaction's creation, because it may have waited long before it could be sent. One node neither begins nor ends the time.
 */
export function hasLongBeenLost({ usedSince, deps }: LaneParts, { id }: TransactionRow, losses: Losses): boolean {
  const since = usedSince.get(id)
  const verdict = losses.get(id)
  if (verdict === 'no') usedSince.delete(id)
  if (verdict === 'yes' && since === undefined) usedSince.set(id, deps.clock.now().getTime())
  return verdict === 'yes' && since !== undefined
}
