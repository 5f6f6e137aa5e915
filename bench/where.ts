import { figure, median } from './figures.ts'
import type { Ground } from './ground.ts'
import { runLoad } from './load.ts'
import type { Run } from './measure.ts'
import { signPayments } from './payments.ts'
import type { Side } from './sides.ts'

interface Measured {
  readonly ground: Ground
  readonly sides: readonly Side[]
  readonly rounds: readonly Run[][]
  readonly paymentsMax: number
}

type Cost = Pick<Run, 'cpuMs' | 'perSecond'>

const profiledMsMax = 3_000
const placesMax = 12

/** The paragraph that says where the time of a verification goes, from the runs' CPU and one more, profiled, run of each side. */
export async function profileByPlace({ ground, sides, rounds, paymentsMax }: Measured): Promise<string> {
  const payments = signPayments(ground.payers, ground.bill, paymentsMax)
  const parts: string[] = ['\nwhere the time goes']
  for (const [index, side] of sides.entries()) {
    const requests = payments.map(side.verifyRequest)
    const load = { port: side.port, connections: 32, requests, msMax: profiledMsMax }
    const shares = await side.child.profileDuring(() => runLoad(load))
    const runs = rounds.flatMap((round) => round[index] ?? [])
    parts.push(`  ${cpuSentence(side.name, runs)} ${profileSentence(shares, cpuOf(runs, 'service'))}`)
  }
  return parts.join('\n')
}

/** CPU use of each process: milliseconds per request, cores in use, and the limit with a single core. */
export function cpuSentence(name: string, runs: readonly Cost[]): string {
  const names = [...new Set(runs.flatMap((run) => [...run.cpuMs.keys()]))]
  const costs = names.map((process) => `${process} ${figure(cpuOf(runs, process))}`)
  const cores = median(
    runs.map((run) => ([...run.cpuMs.values()].reduce((all, ms) => all + ms, 0) * run.perSecond) / 1_000),
  )
  const service = cpuOf(runs, 'service')
  const busy = median(runs.map((run) => ((run.cpuMs.get('service') ?? 0) * run.perSecond) / 1_000))
  return (
    `${name}: CPU milliseconds per request: ${costs.join(', ')}; together ${figure(cores)} cores busy. The service's process used ` +
    `${figure(busy)} of a core; at ${figure(service)} ms each, one core of it could give ${figure(1_000 / service)} a second.`
  )
}

/** Returns a sentence with the parts of a process that use its milliseconds, the largest first. */
export function profileSentence(shares: ReadonlyMap<string, number>, serviceMs: number): string {
  const largest = [...shares].toSorted(([, a], [, b]) => b - a).slice(0, placesMax)
  const listed = largest.map(([place, share]) => `${place} ${figure(share * serviceMs)} (${Math.round(share * 100)}%)`)
  return `Inside it, by a sampled profile, ms per request: ${listed.join(', ')}.`
}

/** Median milliseconds per request of one process. */
export function cpuOf(runs: readonly Cost[], name: string): number {
  return median(runs.map((run) => run.cpuMs.get(name) ?? 0))
}
