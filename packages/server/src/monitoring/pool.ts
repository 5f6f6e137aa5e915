import type { Deps } from '../platform/ctx.ts'

/** Sets gauges of the process's PostgreSQL connections and of the callers that wait for one. They are read when Prometheus requests them. */
export function showPool(
  { db, fairDb, metrics }: Pick<Deps, 'db' | 'fairDb' | 'metrics'>,
  connectionsMax: number,
): void {
  metrics.gauge('purser_db_pool_connections', 'Open connections to PostgreSQL.', ['state'], (gauge) => {
    const { open = 0, idle = 0 } = db.pool?.() ?? {}
    gauge.set({ state: 'in_use' }, open - idle)
    gauge.set({ state: 'idle' }, idle)
  })
  metrics
    .gauge('purser_db_pool_connections_max', 'Most connections that the process opens to PostgreSQL.')
    .set(connectionsMax)
  const help = 'What waits for a free connection, or for a free place in the share of its account.'
  metrics.gauge('purser_db_pool_waiting', help, ['reason'], (gauge) => {
    gauge.set({ reason: 'connection' }, db.pool?.().waiting ?? 0)
    gauge.set({ reason: 'share' }, fairDb.waiting())
  })
}
