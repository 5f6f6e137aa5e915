import { mppxChallenges } from '@purser/devnet/mppx'
import { chargeNonce, formatMppCredential, type MppChallenge, parseChallenges } from '@purser/protocol'
import type { Closing } from './closing.ts'
import { checkTarget, figure, median, sum, table } from './figures.ts'
import { type Ground, priceUsd, startGround } from './ground.ts'
import { getRequest, postRequest, runLoad } from './load.ts'
import { measure, type Run } from './measure.ts'
import { mppxBillOf, startMppx } from './mppx-side.ts'
import { isRecord, parseObject } from './parse.ts'
import { resource, signAuthorizations } from './payments.ts'
import { type Home, type PurserSide, startHome, startPurser } from './sides.ts'

export interface MppPlan {
  readonly rounds: number
  readonly msMax: number
  readonly officialPerRound: number
  readonly oursPerRound: number
}

export const fullMpp: MppPlan = { rounds: 3, msMax: 8_000, officialPerRound: 5_000, oursPerRound: 16_000 }
export const quickMpp: MppPlan = { rounds: 2, msMax: 1_500, officialPerRound: 800, oursPerRound: 2_500 }

const connections = 32
const challengesPerCall = 100

/**
 * Compares paid requests by `evm/charge`: the official mppx server, which settles for free and records nothing, and
 * our service, which queries the chain and commits each payment before it responds. No credential is used twice.
 */
export async function benchMpp(plan: MppPlan, closing: Closing): Promise<number> {
  const ground = await startGround()
  closing.add(() => ground.chain.stop())
  const official = await startMppx(ground.bill)
  closing.add(() => official.child.stop())
  const home = await startHome()
  closing.add(() => home.stop())
  const purser = await startPurser(ground, home)
  closing.add(() => purser.child.stop())

  const sides = [
    {
      name: 'official mppx',
      port: official.port,
      watched: [{ name: 'service', pid: official.child.pid }],
      requests: (count: number) => officialRequests(ground, count),
      isRight: ({ status }: { status: number }) => status === 200,
      count: plan.officialPerRound,
    },
    {
      name: 'Purser, committed',
      port: purser.port,
      watched: [...purser.watched, { name: 'anvil', pid: ground.chain.pid }],
      requests: (count: number) => ourRequests(ground, home, purser, count),
      isRight: ({ status, body }: { status: number; body: string }) =>
        status === 200 && parseObject(body).valid === true,
      count: plan.oursPerRound,
    },
  ]
  for (const side of sides) {
    const requests = await side.requests(Math.ceil(side.count / 8))
    await runLoad({ port: side.port, connections, requests, msMax: plan.msMax })
  }
  const rounds: Run[][] = []
  for (let round = 0; round < plan.rounds; round += 1) {
    const runs: Run[] = []
    for (const side of sides) {
      const requests = await side.requests(side.count)
      runs.push(await measure({ ...side, connections, requests, msMax: plan.msMax }))
    }
    rounds.push(runs)
  }
  console.log(
    `\nmpp: a verified evm authorization, ${connections} connections, ${plan.rounds} rounds in turn, medians\n`,
  )
  const head = [
    '',
    'req/s',
    'p50 ms',
    'p99 ms',
    'service CPU ms',
    'PostgreSQL',
    'anvil',
    'other cores',
    'answered',
    'wrong',
  ]
  console.log(
    table(
      head,
      sides.map(({ name }, index) => [name, ...cellsOf(rounds.flatMap((round) => round[index] ?? []))]),
    ),
  )
  const ratio = median(rounds.map(([theirs, ours]) => (ours?.perSecond ?? 0) / (theirs?.perSecond ?? Number.NaN)))
  console.log(`\n  ratio (ours / official, median of the rounds): ${figure(ratio)}x`)
  const missed = checkTarget('ratio', ratio, { min: 5.5 })
  for (const fault of rounds.flat().flatMap((run) => run.fault ?? [])) console.log(`  WRONG: ${fault}`)
  return missed + sum(rounds.flat().map((run) => run.wrong))
}

function cellsOf(runs: readonly Run[]): string[] {
  const mid = (read: (run: Run) => number) => figure(median(runs.map(read)))
  const cpu = (name: string) => mid((run) => run.cpuMs.get(name) ?? Number.NaN)
  return [
    mid((run) => run.perSecond),
    mid((run) => run.p50Ms),
    mid((run) => run.p99Ms),
    cpu('service'),
    cpu('PostgreSQL'),
    cpu('anvil'),
    mid((run) => run.coresElsewhere),
    String(sum(runs.map((run) => run.answered))),
    String(sum(runs.map((run) => run.wrong))),
  ]
}

/** Paid requests for the official server, for challenges made by its own library under its own secret. */
async function officialRequests(ground: Ground, count: number): Promise<readonly Buffer[]> {
  const headers = await mppxChallenges(mppxBillOf(ground.bill), count)
  const made = headers.flatMap((header) => parseChallenges(header))
  return credentialsOf(ground, made).map((authorization) => getRequest('/one', { authorization }))
}

/** Paid requests for our service, for challenges that it made itself. */
async function ourRequests(ground: Ground, home: Home, purser: PurserSide, count: number): Promise<readonly Buffer[]> {
  const wanted = { walletId: home.walletId, resource, price: priceUsd, acceptX402: false, count: challengesPerCall }
  const calls = Math.ceil(count / challengesPerCall)
  const request = postRequest('/payments/challenge', JSON.stringify(wanted), purser.headers)
  const { responses } = await runLoad({
    port: purser.port,
    connections: 4,
    requests: Array.from({ length: calls }, () => request),
    msMax: 60_000,
  })
  const made = responses.flatMap(({ body }) => headersIn(body).flatMap((header) => parseChallenges(header)))
  const bodies = credentialsOf(ground, made.slice(0, count)).map((credential) =>
    JSON.stringify({ protocol: 'mpp', credential, price: priceUsd, walletId: home.walletId, resource, method: 'GET' }),
  )
  return bodies.map((body) => postRequest('/payments/verify', body, purser.headers))
}

function headersIn(body: string): string[] {
  const list: unknown = JSON.parse(body)
  if (!Array.isArray(list)) throw new Error(`no challenges: ${body.slice(0, 200)}`)
  return list.map((one: unknown) => String(isRecord(one) ? one.mpp : ''))
}

/** Signs one payment for each challenge, the payers taking turns. */
function credentialsOf({ bill, payers }: Ground, challenges: readonly MppChallenge[]): string[] {
  const nonces = challenges.map(({ id, realm }) => chargeNonce(id, realm))
  return signAuthorizations(payers, bill, nonces).map(({ payer, authorization, signature }, index) => {
    const challenge = challenges[index]
    if (challenge === undefined) throw new Error('a signature without a challenge')
    const source = `did:pkh:${bill.network.caip2}:${payer}`
    return formatMppCredential({ challenge, payload: { type: 'authorization', ...authorization, signature }, source })
  })
}
