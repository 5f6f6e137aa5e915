import type { Closing } from './closing.ts'
import { watchCpu } from './cpu.ts'
import { figure, median, sum, table } from './figures.ts'
import { type Ground, startGround } from './ground.ts'
import { runLoad } from './load.ts'
import { type SignedPayment, signPayments } from './payments.ts'
import { type PurserSide, startHome, startPurser } from './sides.ts'

export interface ProcessesPlan {
  /** Requests in flight, over all services. */
  readonly connections: number
  readonly rounds: number
  readonly msMax: number
  readonly paymentsPerRound: number
  readonly warmUp: number
}

export const fullProcesses: ProcessesPlan = {
  connections: 64,
  rounds: 3,
  msMax: 8_000,
  paymentsPerRound: 12_000,
  warmUp: 1_500,
}
export const quickProcesses: ProcessesPlan = {
  connections: 64,
  rounds: 2,
  msMax: 1_000,
  paymentsPerRound: 2_000,
  warmUp: 200,
}

/** The numbers of services that this machine can measure, and the number for which the cores of PostgreSQL are calculated. */
const counts = [1, 2]
const calculatedCount = 16

interface Run {
  readonly perSecond: number
  readonly answered: number
  readonly wrong: number
  /** CPU milliseconds of a verification. */
  readonly serviceMs: number
  readonly postgresMs: number
  readonly coresElsewhere: number
}

/**
 * Verifies payments at one and at two services of one PostgreSQL, and calculates from the CPU time of a verification how many
 * cores PostgreSQL needs for more services. Returns the number of wrong responses.
 */
export async function benchProcesses(plan: ProcessesPlan, closing: Closing): Promise<number> {
  const ground = await startGround()
  closing.add(() => ground.chain.stop())
  const home = await startHome()
  closing.add(() => home.stop())
  const services: PurserSide[] = []
  closing.add(() => Promise.all(services.map(({ child }) => child.stop())))
  const runsOf = new Map<number, Run[]>()
  for (const count of counts) {
    while (services.length < count) services.push(await startPurser(ground, home))
    await verifyAt(services, signPayments(ground.payers, ground.bill, plan.warmUp * count), plan)
    const runs: Run[] = []
    for (let round = 0; round < plan.rounds; round += 1)
      runs.push(
        await measureRound(services, signPayments(ground.payers, ground.bill, plan.paymentsPerRound), { plan, ground }),
      )
    runsOf.set(count, runs)
  }
  print(plan, runsOf)
  return sum([...runsOf.values()].flat().map(({ wrong }) => wrong))
}

/** Sends each service its part of the payments at the same time. */
async function verifyAt(services: readonly PurserSide[], payments: readonly SignedPayment[], plan: ProcessesPlan) {
  const { msMax } = plan
  const connections = Math.ceil(plan.connections / services.length)
  return Promise.all(
    services.map(async (side, place) => {
      const requests = payments.filter((_, index) => index % services.length === place).map(side.verifyRequest)
      const load = await runLoad({ port: side.port, connections, requests, msMax })
      return { ...load, wrong: load.responses.filter((response) => !side.isVerified(response)).length }
    }),
  )
}

async function measureRound(
  services: readonly PurserSide[],
  payments: readonly SignedPayment[],
  { plan, ground }: { readonly plan: ProcessesPlan; readonly ground: Ground },
): Promise<Run> {
  const [first] = services
  const postgres = first?.watched.find(({ name }) => name === 'PostgreSQL')
  if (postgres === undefined) throw new Error('a service without PostgreSQL')
  const watched = [
    ...services.map(({ child }, place) => ({ name: `service ${place}`, pid: child.pid })),
    postgres,
    { name: 'anvil', pid: ground.chain.pid },
  ]
  const used = watchCpu(watched)
  const loads = await verifyAt(services, payments, plan)
  const cpu = used()
  const answered = sum(loads.map(({ responses }) => responses.length))
  const wrong = sum(loads.map((load) => load.wrong))
  const elapsedMs = Math.max(...loads.map((load) => load.elapsedMs))
  const serviceMs = sum(services.map((_, place) => cpu.byName.get(`service ${place}`) ?? 0))
  return {
    perSecond: ((answered - wrong) / elapsedMs) * 1_000,
    ...{ answered, wrong },
    serviceMs: serviceMs / Math.max(1, answered),
    postgresMs: (cpu.byName.get('PostgreSQL') ?? 0) / Math.max(1, answered),
    coresElsewhere: cpu.elsewhere / elapsedMs,
  }
}

function print(plan: ProcessesPlan, runsOf: ReadonlyMap<number, readonly Run[]>): void {
  const mid = (runs: readonly Run[], read: (run: Run) => number) => median(runs.map(read))
  console.log(`\nverify: ${plan.connections} connections, services of one PostgreSQL, ${plan.rounds} rounds, medians\n`)
  const rows = [...runsOf].map(([count, runs]) => [
    String(count),
    figure(mid(runs, ({ perSecond }) => perSecond)),
    figure(mid(runs, ({ serviceMs }) => serviceMs)),
    figure(mid(runs, ({ postgresMs }) => postgresMs)),
    figure(mid(runs, ({ coresElsewhere }) => coresElsewhere)),
    String(sum(runs.map(({ answered }) => answered))),
    String(sum(runs.map(({ wrong }) => wrong))),
  ])
  console.log(table(['services', 'req/s', 'service CPU ms', 'PostgreSQL', 'other cores', 'answered', 'wrong'], rows))
  const most = [...runsOf.values()].at(-1) ?? []
  const [serviceMs, postgresMs] = [mid(most, (run) => run.serviceMs), mid(most, (run) => run.postgresMs)]
  const perService = 1_000 / serviceMs
  const cores = (calculatedCount * postgresMs) / serviceMs
  console.log(
    `\n  by arithmetic: a service with a core of its own verifies ${figure(perService)} a second; ${calculatedCount} of them ${figure(perService * calculatedCount)}, for which PostgreSQL needs ${figure(cores)} cores. A core of PostgreSQL is enough for ${figure(serviceMs / postgresMs)} services.`,
  )
}
