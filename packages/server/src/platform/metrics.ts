import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'

export interface Metrics extends RequestMetrics, WorkMetrics {
  readonly registry: Registry
  readonly counter: (name: string, help: string, labelNames?: readonly string[]) => Counter
  /** `collect` sets the values each time that Prometheus reads them. The first call for a name counts. */
  readonly gauge: (
    name: string,
    help: string,
    labelNames?: readonly string[],
    collect?: (gauge: Gauge) => void,
  ) => Gauge
}

interface RequestMetrics {
  readonly requests: Counter<'operation' | 'status'>
  readonly requestSeconds: Histogram<'operation'>
  /** Requests that were refused before an operation ran, by the code of their problem. */
  readonly refusals: Counter<'code'>
}

interface WorkMetrics {
  readonly tasks: Counter<'task' | 'outcome'>
  /** Payments that ended, by their outcome: `settled`, `settlement_failed` or `voided`. */
  readonly payments: Counter<'network' | 'outcome'>
  readonly settleSeconds: Histogram<'network'>
}

/** Prometheus metrics of one process, in a registry of their own so that tests can start several servers. */
export function createMetrics(): Metrics {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const registers = [registry]
  return {
    registry,
    ...requestMetrics(registers),
    ...workMetrics(registers),
    counter: (name, help, labelNames = []) => {
      const known = registry.getSingleMetric(name)
      return known instanceof Counter ? known : new Counter({ name, help, labelNames: [...labelNames], registers })
    },
    gauge: (name, help, labelNames = [], collect = () => undefined) => {
      const known = registry.getSingleMetric(name)
      if (known instanceof Gauge) return known
      const gauge: Gauge = new Gauge({
        ...{ name, help, labelNames: [...labelNames], registers },
        collect: () => collect(gauge),
      })
      return gauge
    },
  }
}

function requestMetrics(registers: Registry[]): RequestMetrics {
  return {
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
    refusals: new Counter({
      name: 'purser_refusals_total',
      help: 'Requests that were refused before an operation ran.',
      labelNames: ['code'],
      registers,
    }),
  }
}

function workMetrics(registers: Registry[]): WorkMetrics {
  return {
    tasks: new Counter({
      name: 'purser_tasks_total',
      help: 'Runs of recurring tasks.',
      labelNames: ['task', 'outcome'],
      registers,
    }),
    payments: new Counter({
      name: 'purser_payments_ended_total',
      help: 'Payments that this process saw end.',
      labelNames: ['network', 'outcome'],
      registers,
    }),
    settleSeconds: new Histogram({
      name: 'purser_payment_settle_seconds',
      help: 'Time from the verification of a payment to its settlement.',
      labelNames: ['network'],
      buckets: [0.5, 1, 2, 3, 5, 10, 20, 30, 60, 120, 300, 900],
      registers,
    }),
  }
}
