import type { Deps } from '../platform/ctx.ts'
import { within } from '../platform/within.ts'
import { listDepths } from './store.ts'

/** Well below the time that Prometheus waits for the metrics (10 s by default), which must arrive when the database does not respond. */
const responseMsMax = 2_000
const late = 'the database does not respond in time'

/** Sets the gauges of queues to what waits now; without a response of the database within two seconds they have no values. */
export async function showQueues({ db, metrics, log }: Pick<Deps, 'db' | 'metrics' | 'log'>): Promise<void> {
  const labels = ['queue', 'network'] as const
  const depths = metrics.gauge('purser_queue_depth', 'What waits in a queue, counted up to 10,000.', labels)
  const ages = metrics.gauge('purser_queue_age_seconds', 'How long the oldest item of a queue has waited.', labels)
  depths.reset()
  ages.reset()
  try {
    const listed = db.tx(listDepths, { readsInOrder: true })
    for (const { queue, network, depth, ageSeconds } of await within(responseMsMax, listed, late)) {
      depths.set({ queue, network }, depth)
      ages.set({ queue, network }, ageSeconds)
    }
  } catch (error) {
    log.warn({ err: error }, 'the queues cannot be counted')
  }
}

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
