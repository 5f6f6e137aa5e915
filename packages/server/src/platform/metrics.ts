import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'

export interface Metrics {
  readonly registry: Registry
  readonly requests: Counter<'operation' | 'status'>
  readonly requestSeconds: Histogram<'operation'>
  readonly jobs: Counter<'job' | 'outcome'>
  readonly gauge: (name: string, help: string, labelNames?: readonly string[]) => Gauge
}

/** Prometheus metrics of one process, in a registry of their own so that tests can start several servers. */
export function createMetrics(): Metrics {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const registers = [registry]
  return {
    registry,
    requests: new Counter({
      name: 'purser_requests_total',
      help: 'Answered requests.',
      labelNames: ['operation', 'status'],
      registers,
    }),
    requestSeconds: new Histogram({
      name: 'purser_request_seconds',
      help: 'Time from reading the request to sending the response.',
      labelNames: ['operation'],
      buckets: [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15],
      registers,
    }),
    jobs: new Counter({
      name: 'purser_jobs_total',
      help: 'Number of background job runs.',
      labelNames: ['job', 'outcome'],
      registers,
    }),
    gauge: (name, help, labelNames = []) => {
      const known = registry.getSingleMetric(name)
      return known instanceof Gauge ? known : new Gauge({ name, help, labelNames: [...labelNames], registers })
    },
  }
}
