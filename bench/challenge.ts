import { startChild } from './children.ts'
import type { Closing } from './closing.ts'
import { checkTarget, figure, median, sum, table } from './figures.ts'
import { type Ground, priceUsd, startGround } from './ground.ts'
import { getRequest, runLoad } from './load.ts'
import { measure, type Run } from './measure.ts'
import { challengeIdOf, startMppx } from './mppx-side.ts'
import { registerTempoWallet, startHome, startPurser } from './sides.ts'

export interface ChallengePlan {
  readonly rounds: number
  readonly msMax: number
  readonly warmUpMs: number
}

export const fullChallenge: ChallengePlan = { rounds: 3, msMax: 6_000, warmUpMs: 2_000 }
export const quickChallenge: ChallengePlan = { rounds: 2, msMax: 1_000, warmUpMs: 500 }

const connections = 32
/** More requests than any run can send. */
const requestsMax = 300_000
const batch = 100

/** A server that responds with 402, and the request to send. */
interface Target {
  readonly name: string
  readonly port: number
  readonly request: Buffer
  readonly watched: readonly { readonly name: string; readonly pid: number; readonly tree?: boolean }[]
}

/**
 * Compares unpaid requests: the official mppx server on `node:http`, and our middleware, whose challenges come from the
 * service in batches. Every response must be a 402 with a challenge, and no
 * two of ours the same one.
 */
export async function benchChallenge(plan: ChallengePlan, closing: Closing): Promise<number> {
  const ground = await startGround()
  closing.add(() => ground.chain.stop())
  const targets = await startAll(ground, closing)
  for (const one of targets) await runLoad({ ...loadOf(one), msMax: plan.warmUpMs })
  const rounds: TargetRun[][] = []
  for (let round = 0; round < plan.rounds; round += 1) {
    const runs: TargetRun[] = []
    for (const one of targets) runs.push(await ask(one, plan))
    rounds.push(runs)
  }
  const cells = targets.map(({ name }, index) => [name, ...cellsOf(rounds.flatMap((round) => round[index] ?? []))])
  console.log(`\nchallenge: ${connections} connections, ${plan.rounds} rounds in turn, medians\n`)
  const head = [
    '',
    'req/s',
    'p50 ms',
    'p99 ms',
    'CPU ms/req',
    'shop',
    'service',
    'PostgreSQL',
    'other cores',
    'answered',
    'ids twice',
    'wrong',
  ]
  console.log(table(head, cells))
  const rate = (index: number) => median(rounds.map((round) => round[index]?.perSecond ?? Number.NaN))
  const cpu = (index: number) => median(rounds.map((round) => cpuOf(round[index])))
  let missed = 0
  for (const peer of [0, 2]) {
    const ratios = `${figure(rate(peer + 1) / rate(peer))}x the rate, ${figure(cpu(peer) / cpu(peer + 1))}x less CPU`
    console.log(`\n  ours against ${targets[peer]?.name}: ${ratios}`)
    missed += checkTarget('rate', rate(peer + 1) / rate(peer), { min: 12 })
  }
  for (const fault of rounds.flat().flatMap((run) => run.fault ?? [])) console.log(`  WRONG: ${fault}`)
  const oursTwice = sum(rounds.flatMap((round) => [1, 3].map((ours) => round[ours]?.idsGivenTwice ?? 0)))
  return missed + oursTwice + sum(rounds.flat().map((run) => run.wrong))
}

async function startAll(ground: Ground, closing: Closing): Promise<readonly Target[]> {
  const official = await startMppx(ground.bill)
  closing.add(() => official.child.stop())
  const home = await startHome()
  closing.add(() => home.stop())
  const purser = await startPurser(ground, home)
  closing.add(() => purser.child.stop())
  const shopOf = async (name: string, otherWallets: string): Promise<Target> => {
    const shop = await startChild('paid-shop.ts', {
      BENCH_PURSER: `http://127.0.0.1:${purser.port}`,
      BENCH_API_KEY: home.apiKey ?? '',
      BENCH_WALLET: home.walletId ?? '',
      BENCH_OTHER_WALLETS: otherWallets,
      BENCH_PRICE: priceUsd,
      BENCH_BATCH: String(batch),
    })
    closing.add(() => shop.stop())
    const watched = [{ name: 'shop', pid: shop.pid }, ...purser.watched]
    return { name, request: getRequest('/report'), port: Number(shop.ready('port')), watched }
  }
  const mppx = { port: official.port, watched: [{ name: 'shop', pid: official.child.pid }] }
  return [
    { name: 'mppx, tempo + evm + x402', request: getRequest('/dual'), ...mppx },
    await shopOf('Purser, tempo + evm + x402 v2 + v1', await registerTempoWallet(purser, ground)),
    { name: 'mppx, evm + x402', request: getRequest('/one'), ...mppx },
    await shopOf('Purser, evm + x402 v2 + v1', ''),
  ]
}

const requestsOf = new Map<Buffer, readonly Buffer[]>()

function loadOf({ port, request }: Target) {
  const requests = requestsOf.get(request) ?? Array.from({ length: requestsMax }, () => request)
  requestsOf.set(request, requests)
  return { port, connections, requests, keep: challengeIdOf }
}

type TargetRun = Run & { readonly idsGivenTwice: number }

/**
 * Sends unpaid requests. A response is correct if it is a 402 with a challenge; also counts the ids that occur twice.
 */
async function ask(target: Target, plan: ChallengePlan): Promise<TargetRun> {
  const isRight = ({ status, body }: { readonly status: number; readonly body: string }) =>
    status === 402 && body !== ''
  const run = await measure({ ...loadOf(target), msMax: plan.msMax, watched: target.watched, isRight })
  const ids = run.load.responses.map(({ body }) => body)
  return { ...run, idsGivenTwice: ids.length - new Set(ids).size }
}

/** CPU time per response over all processes, in milliseconds. */
function cpuOf(run: Run | undefined): number {
  const used = [...(run?.cpuMs ?? [])].filter(([name]) => name !== 'load generator')
  return sum(used.map(([, ms]) => ms))
}

function cellsOf(runs: readonly TargetRun[]): string[] {
  const mid = (read: (run: TargetRun) => number) => figure(median(runs.map(read)))
  return [
    mid((run) => run.perSecond),
    mid((run) => run.p50Ms),
    mid((run) => run.p99Ms),
    mid(cpuOf),
    ...['shop', 'service', 'PostgreSQL'].map((name) => mid((run) => run.cpuMs.get(name) ?? Number.NaN)),
    mid((run) => run.coresElsewhere),
    String(sum(runs.map((run) => run.answered))),
    String(sum(runs.map((run) => run.idsGivenTwice))),
    String(sum(runs.map((run) => run.wrong))),
  ]
}
