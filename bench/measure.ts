import { type Watched, watchCpu } from './cpu.ts'
import { quantile } from './figures.ts'
import { type Keep, type LoadResponse, type LoadResult, runLoad } from './load.ts'

/** The result of one run of one side. CPU is in milliseconds per response, by process. */
export interface Run {
  readonly perSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly answered: number
  readonly wrong: number
  /** The first wrong response, for debugging. */
  readonly fault: string | undefined
  readonly cpuMs: ReadonlyMap<string, number>
  /** Cores used by other work on the machine meanwhile. */
  readonly coresElsewhere: number
}

export interface Measurement {
  readonly port: number
  readonly connections: number
  readonly requests: readonly Buffer[]
  readonly msMax: number
  readonly watched: readonly Watched[]
  isRight(response: LoadResponse): boolean
  readonly keep?: Keep | undefined
}

/** Runs a load and reads the CPU time of all processes before and after. */
export async function measure(measurement: Measurement): Promise<Run & { readonly load: LoadResult }> {
  const used = watchCpu(measurement.watched)
  const load = await runLoad(measurement)
  const cpu = used()
  const wrong = load.responses.filter((response) => !measurement.isRight(response))
  const answered = load.responses.length
  const ms = load.responses.map((response) => response.ms)
  return {
    load,
    answered,
    wrong: wrong.length,
    fault: wrong[0] && `${wrong[0].status} ${wrong[0].body.slice(0, 300)}`,
    perSecond: ((answered - wrong.length) / load.elapsedMs) * 1_000,
    p50Ms: quantile(ms, 0.5),
    p99Ms: quantile(ms, 0.99),
    coresElsewhere: cpu.elsewhere / load.elapsedMs,
    cpuMs: new Map([...cpu.byName].map(([name, value]) => [name, value / Math.max(1, answered)])),
  }
}
