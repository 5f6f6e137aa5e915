import { startChild } from './children.ts'
import type { Closing } from './closing.ts'
import { checkTarget, figure, median, sum, table } from './figures.ts'
import { type Ground, startGround } from './ground.ts'
import { runLoad } from './load.ts'
import { measure, type Run } from './measure.ts'
import { signPayments } from './payments.ts'
import { type Home, type Side, startHome, startOfficial, startPurser, withKeys } from './sides.ts'
import { profileByPlace } from './where.ts'

export interface VerifyPlan {
  /** Requests in flight. */
  readonly connections: number
  /** Whether each request to our service has an Idempotency-Key, as the SDK sends one. */
  readonly hasKeys: boolean
  readonly rounds: number
  readonly msMax: number
  readonly paymentsPerRound: number
  readonly warmUp: number
  readonly lateMsMax: number
}

export const fullVerify: VerifyPlan = {
  connections: 32,
  hasKeys: false,
  rounds: 3,
  msMax: 8_000,
  paymentsPerRound: 12_000,
  warmUp: 1_500,
  lateMsMax: 4_000,
}
export const quickVerify: VerifyPlan = {
  connections: 32,
  hasKeys: false,
  rounds: 2,
  msMax: 1_000,
  paymentsPerRound: 2_000,
  warmUp: 200,
  lateMsMax: 600,
}

const nodeDelayMs = 25
const latePerConnectionMax = 60

/** Our rate as a multiple of the official one. */
const ratioMin = 5.5
/** The median with a late node, in milliseconds: one round trip to it and a commit are 30. */
const lateMsTarget = 34

/** Compares verifying on both sides. Returns the number of wrong responses and missed targets. */
export async function benchVerify(plan: VerifyPlan, closing: Closing): Promise<number> {
  const ground = await startGround()
  closing.add(() => ground.chain.stop())
  const home = await startHome()
  closing.add(() => home.stop())
  const near = await compareNear(plan, ground, home, closing)
  const late = await compareLate(plan, ground, home, closing)
  return near + late
}

async function compareNear(plan: VerifyPlan, ground: Ground, home: Home, closing: Closing): Promise<number> {
  const ours = await startPurser(ground, home)
  const sides = [await startOfficial(ground), plan.hasKeys ? withKeys(ours) : ours]
  const stop = closing.add(() => Promise.all(sides.map(({ child }) => child.stop())))
  const { connections } = plan
  await warmUp(plan, ground, sides)
  const rounds: Run[][] = []
  for (let round = 0; round < plan.rounds; round += 1) {
    rounds.push(await runRound(ground, sides, { connections, count: plan.paymentsPerRound, msMax: plan.msMax }))
  }
  console.log(`\nverify: ${connections} connections, anvil on this machine, ${plan.rounds} rounds in turn, medians\n`)
  console.log(verifyTable(sides, rounds))
  const ratio = medianRatio(rounds)
  console.log(`\n  ratio (ours / official, median of the rounds): ${figure(ratio)}x`)
  const missed = checkTarget('ratio', ratio, { min: ratioMin })
  console.log(await profileByPlace({ ground, sides, rounds, paymentsMax: plan.paymentsPerRound }))
  await stop()
  return missed + reportWrong(sides, rounds)
}

/** Repeats it with a node 25 ms away, as with a remote chain. */
async function compareLate(plan: VerifyPlan, ground: Ground, home: Home, closing: Closing): Promise<number> {
  const proxy = await startChild('late-node.ts', {
    BENCH_RPC_URL: ground.chain.rpcUrl,
    BENCH_DELAY_MS: String(nodeDelayMs),
  })
  const stopProxy = closing.add(() => proxy.stop())
  const rpcUrl = proxy.ready('url')
  const sides = [await startOfficial(ground, rpcUrl), await startPurser(ground, home, rpcUrl)]
  const stop = closing.add(() => Promise.all(sides.map(({ child }) => child.stop())))
  const { connections } = plan
  await warmUp(plan, ground, sides)
  const rows: string[][] = []
  let wrong = 0
  let oursMs = Number.NaN
  for (const lanes of [1, connections]) {
    const count = lanes * latePerConnectionMax
    const rounds = [await runRound(ground, sides, { connections: lanes, count, msMax: plan.lateMsMax })]
    rows.push(...sides.map((side, index) => [`${side.name}, ${lanes} at once`, ...lateCells(rounds, index)]))
    wrong += reportWrong(sides, rounds)
    oursMs = rounds[0]?.[1]?.p50Ms ?? Number.NaN
  }
  console.log(`\nverify: the node answers ${nodeDelayMs} ms late\n`)
  console.log(table(['', 'p50 ms', 'p99 ms', 'req/s'], rows))
  wrong += checkTarget(`our p50 ms, ${connections} at once,`, oursMs, { max: lateMsTarget })
  await stop()
  await stopProxy()
  return wrong
}

async function warmUp(plan: VerifyPlan, ground: Ground, sides: readonly Side[]): Promise<void> {
  const payments = signPayments(ground.payers, ground.bill, plan.warmUp)
  for (const side of sides) {
    const requests = payments.map(side.verifyRequest)
    await runLoad({ port: side.port, connections: plan.connections, requests, msMax: plan.msMax })
  }
}

type Round = { readonly connections: number; readonly count: number; readonly msMax: number }

/** One run of each side, on the same payments: nothing but the verifying differs. */
async function runRound(ground: Ground, sides: readonly Side[], { connections, count, msMax }: Round): Promise<Run[]> {
  const payments = signPayments(ground.payers, ground.bill, count)
  const runs: Run[] = []
  for (const side of sides) {
    const requests = payments.map(side.verifyRequest)
    const watched = [...side.watched, { name: 'anvil', pid: ground.chain.pid }]
    runs.push(await measure({ port: side.port, connections, requests, msMax, watched, isRight: side.isVerified }))
  }
  return runs
}

function verifyTable(sides: readonly Side[], rounds: readonly Run[][]): string {
  const head = [
    '',
    'req/s',
    'p50 ms',
    'p99 ms',
    'CPU ms/req',
    'PostgreSQL',
    'anvil',
    'other cores',
    'answered',
    'wrong',
  ]
  return table(
    head,
    sides.map((side, index) => {
      const runs = rounds.flatMap((round) => round[index] ?? [])
      const mid = (read: (run: Run) => number) => median(runs.map(read))
      const cpu = (name: string) => figure(mid((run) => run.cpuMs.get(name) ?? Number.NaN))
      return [
        side.name,
        figure(mid((run) => run.perSecond)),
        figure(mid((run) => run.p50Ms)),
        figure(mid((run) => run.p99Ms)),
        cpu('service'),
        cpu('PostgreSQL'),
        cpu('anvil'),
        figure(mid((run) => run.coresElsewhere)),
        String(sum(runs.map((run) => run.answered))),
        String(sum(runs.map((run) => run.wrong))),
      ]
    }),
  )
}

function medianRatio(rounds: readonly Run[][]): number {
  return median(rounds.map(([official, ours]) => (ours?.perSecond ?? 0) / (official?.perSecond ?? Number.NaN)))
}

function lateCells(rounds: readonly Run[][], index: number): string[] {
  const runs = rounds.flatMap((round) => round[index] ?? [])
  return [(run: Run) => run.p50Ms, (run: Run) => run.p99Ms, (run: Run) => run.perSecond].map((read) =>
    figure(median(runs.map(read))),
  )
}

function reportWrong(sides: readonly Side[], rounds: readonly Run[][]): number {
  for (const [index, side] of sides.entries()) {
    const fault = rounds.flatMap((round) => round[index]?.fault ?? [])[0]
    if (fault !== undefined) console.log(`  WRONG from ${side.name}: ${fault}`)
  }
  return sum(rounds.flat().map((run) => run.wrong))
}
