import type { Address } from '@purser/protocol'
import type { Deps } from '../../platform/ctx.ts'
import type { AttemptRow, LaneTransactionRow } from './store.ts'

/** A transaction that is open for longer is overdue: each network mines and confirms in less than a minute. Also the time between two lines. */
const overdueMs = 600_000

export interface OverdueLog {
  /** Logs the oldest overdue transaction of each account, at most once in ten minutes for an account. */
  report(open: readonly LaneTransactionRow[], attempts: ReadonlyMap<string, readonly AttemptRow[]>): void
}

export function createOverdueLog({ clock, log }: Pick<Deps, 'clock' | 'log'>): OverdueLog {
  const loggedMs = new Map<Address, number>()
  return {
    report(open, attempts) {
      const now = clock.now().getTime()
      const overdue = open.filter(({ createdAt }) => now - createdAt.getTime() > overdueMs)
      for (const [sender, at] of loggedMs) if (now - at > overdueMs) loggedMs.delete(sender)
      for (const [sender, [oldest]] of Map.groupBy(overdue, (one) => one.sender)) {
        if (oldest === undefined || loggedMs.has(sender)) continue
        loggedMs.set(sender, now)
        const { id: transactionId, network, nonce, purpose, status, createdAt: since } = oldest
        const hashes = (attempts.get(transactionId) ?? []).map(({ hash }) => hash)
        const details = { network, sender, nonce: nonce.toString(), transactionId, purpose, status, since, hashes }
        log.warn(details, 'a transaction is open for more than ten minutes')
      }
    },
  }
}
