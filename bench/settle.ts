import { blockGasMaxOf, setBlockGasMax, setBlockTime } from './chain-audit.ts'
import type { Closing } from './closing.ts'
import { checkTarget, figure, median, sum, table } from './figures.ts'
import { fiveAtOfficial, fiveAtOurs, isOneOfFive, notifyFive } from './five-at-once.ts'
import { type Ground, startGround } from './ground.ts'
import { lostOf, profileOurs, type SettleRun, settleOfficially, settleOurs } from './settle-runs.ts'
import { type PurserSide, type Side, startHome, startOfficial, startPurser } from './sides.ts'
import { cpuOf, cpuSentence, profileSentence } from './where.ts'

interface Sizes {
  readonly official: number
  readonly ours: number
  readonly waiting: number
  readonly profiled: number
}

export interface SettlePlan {
  readonly rounds: number
  /** For a block per transaction and for blocks every two seconds. */
  readonly instant: Sizes
  readonly timed: Sizes
}

export const fullSettle: SettlePlan = {
  rounds: 2,
  instant: { official: 384, ours: 1_500, waiting: 256, profiled: 600 },
  timed: { official: 384, ours: 3_200, waiting: 256, profiled: 600 },
}
export const quickSettle: SettlePlan = {
  rounds: 1,
  instant: { official: 64, ours: 300, waiting: 64, profiled: 200 },
  timed: { official: 64, ours: 600, waiting: 64, profiled: 200 },
}

const blockSeconds = 2

/**
 * Compares settling on both sides with both kinds of blocks. Returns how many payments were lost or not settled
 * exactly once.
 */
export async function benchSettle(plan: SettlePlan, closing: Closing, blockGasMax?: number): Promise<number> {
  const ground = await startGround()
  closing.add(() => ground.chain.stop())
  if (blockGasMax !== undefined) await setBlockGasMax(ground.chain.rpcUrl, blockGasMax)
  console.log(
    `a block takes ${figure((await blockGasMaxOf(ground.chain.rpcUrl)) / 1_000_000)} million gas (--block-gas=<gas> for another)`,
  )
  const home = await startHome()
  closing.add(() => home.stop())
  const official = await startOfficial(ground)
  closing.add(() => official.child.stop())
  const ours = await startPurser(ground, home)
  closing.add(() => ours.child.stop())
  const sides = { ground, official, ours }

  await settleOfficially(ground, official, 32)
  await settleOurs(ground, ours, { count: 200, waiting: false })
  // Instant blocks first: each costs anvil more the more its chain holds, and only the official side makes many.
  let wrong = await compare(sides, plan.rounds, {
    mode: 'a block per transaction',
    sizes: plan.instant,
    ratioMin: 8,
  })
  await setBlockTime(ground.chain.rpcUrl, blockSeconds)
  wrong += await compare(sides, plan.rounds, {
    mode: `blocks every ${blockSeconds} s`,
    sizes: plan.timed,
    ratioMin: 15,
  })
  return wrong + (await checkFive(ground, official, ours))
}

type Sides = { ground: Ground; official: Side; ours: PurserSide }
type Rows = { official: SettleRun[]; later: SettleRun[]; waiting: SettleRun[] }

async function compare(
  { ground, official, ours }: Sides,
  rounds: number,
  { mode, sizes, ratioMin }: { mode: string; sizes: Sizes; ratioMin: number },
): Promise<number> {
  const rows: Rows = { official: [], later: [], waiting: [] }
  for (let round = 0; round < rounds; round += 1) {
    rows.official.push(await settleOfficially(ground, official, sizes.official))
    rows.later.push(await settleOurs(ground, ours, { count: sizes.ours, waiting: false }))
  }
  rows.waiting.push(await settleOurs(ground, ours, { count: sizes.waiting, waiting: true }))

  console.log(`\nsettle: 64 in flight, ${mode}, ${rounds} rounds in turn, medians\n`)
  console.log(settleTable(rows))
  const ratio = median(rows.later.map((run, round) => run.perSecond / (rows.official[round]?.perSecond ?? Number.NaN)))
  const gasSaved = 1 - gasEach(rows.later) / gasEach(rows.official)
  const lost = sum([...rows.later, ...rows.waiting].map(lostOf))
  console.log(
    `\n  ratio (ours, respond-async / official, median of the rounds): ${figure(ratio)}x; ` +
      `gas per payment ${figure(gasSaved * 100)}% less; lost by ours: ${lost}, by the official one: ${sum(rows.official.map(lostOf))}`,
  )
  const missed = checkTarget('ratio', ratio, { min: ratioMin })
  const profile = await profileOurs(ground, ours, sizes.profiled)
  const inside = profileSentence(profile, cpuOf(rows.later, 'service'))
  console.log(`\nwhere the time goes\n  ${cpuSentence('official', rows.official)}`)
  console.log(`  ${cpuSentence('purser', rows.later)} ${inside}`)
  for (const { fault } of Object.values(rows).flat()) if (fault !== undefined) console.log(`  WRONG: ${fault}`)
  return lost + missed
}

function settleTable({ official, later, waiting }: Rows): string {
  const head = [
    '',
    'settled/s',
    'answer p50 ms',
    'p99 ms',
    'gas/payment',
    'payments/tx',
    'service CPU ms',
    'other cores',
    'requested',
    'lost',
  ]
  const named: [string, SettleRun[]][] = [
    ['official, with nonceManager', official],
    ['purser, Prefer: respond-async', later],
    ['purser, waiting for each', waiting],
  ]
  return table(
    head,
    named.map(([name, runs]) => {
      const mid = (read: (run: SettleRun) => number) => figure(median(runs.map(read)))
      return [
        name,
        mid((run) => run.perSecond),
        mid((run) => run.p50Ms),
        mid((run) => run.p99Ms),
        figure(gasEach(runs)),
        mid((run) => run.facts.used / run.facts.transactions),
        mid((run) => run.cpuMs.get('service') ?? 0),
        mid((run) => run.coresElsewhere),
        String(sum(runs.map((run) => run.requested))),
        String(sum(runs.map(lostOf))),
      ]
    }),
  )
}

/** All the gas of the settler's transactions, the failed ones too, over the payments that arrived. */
function gasEach(runs: readonly SettleRun[]): number {
  return Number(runs.reduce((gas, { facts }) => gas + facts.gas, 0n)) / sum(runs.map(({ facts }) => facts.used))
}

async function checkFive(ground: Ground, official: Side, ours: PurserSide): Promise<number> {
  const theirs = await fiveAtOfficial(ground, official)
  const own = await fiveAtOurs(ground, ours)
  console.log('\nfive settlements of one payment at once\n')
  console.log(notifyFive('official', theirs))
  console.log(notifyFive('purser', own))
  return isOneOfFive(own) ? 0 : 1
}
