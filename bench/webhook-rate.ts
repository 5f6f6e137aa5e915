import { setTimeout as pause } from 'node:timers/promises'
import { startChild } from './children.ts'
import { watchCpu } from './cpu.ts'
import { checkTarget, figure, median, sum, table } from './figures.ts'
import type { Arrived, Hook, NewEvent, WebhookGround } from './webhook-ground.ts'
import { profileSentence } from './where.ts'

export interface RatePlan {
  readonly rounds: number
  /** Of a round: as many events, each to one endpoint. */
  readonly deliveries: number
}

export const fullRate: RatePlan = { rounds: 5, deliveries: 20_000 }
export const quickRate: RatePlan = { rounds: 2, deliveries: 6_000 }

const perSecondMin = 3_000
const ratioMin = 0.4
/** As many as deliveries have to the busy endpoints. */
const bareConnections = 32
const roundMsMax = 60_000
const pollMs = 10

/** Each has a webhook that takes it alone. */
const types = [
  'payment.received',
  'payment.settled',
  'vault.sealed',
  'vault.expired',
  'deposit.success',
  'transfer.completed',
  'withdrawal.completed',
  'withdrawal.failed',
]

interface Side {
  readonly name: string
  /** Of the events, in turn; an endpoint for each. */
  readonly types: readonly string[]
}

interface Round {
  readonly perSecond: number
  /** Milliseconds for each delivery, by process. */
  readonly cpuMs: ReadonlyMap<string, number>
  readonly coresElsewhere: number
  readonly wrong: number
}

/**
 * Measures how many deliveries a second are made and recorded of events that were committed at once, fan-out included, next to a
 * bare loop that posts the same bytes to the same receiver. Returns how many deliveries were wrong and targets missed.
 */
export async function benchWebhookRate(plan: RatePlan, ground: WebhookGround): Promise<number> {
  const sides: readonly Side[] = [
    { name: `${types.length} endpoints`, types },
    { name: 'one endpoint', types: types.slice(0, 1) },
  ]
  for (const side of sides) await runRound(ground, side, plan.deliveries / 4)
  const bare: Round[] = []
  const rounds: Round[][] = sides.map(() => [])
  for (let round = 0; round < plan.rounds; round++) {
    bare.push(await runBare(ground, plan.deliveries))
    for (const [index, side] of sides.entries()) rounds[index]?.push(await runRound(ground, side, plan.deliveries))
  }
  const profiled = await profileOf(ground, sides, plan.deliveries)
  console.log(`\nwebhook deliveries: ${plan.deliveries} events committed at once, ${plan.rounds} rounds, medians\n`)
  const ratios = (own: readonly Round[]) =>
    median(own.map(({ perSecond }, at) => perSecond / (bare[at]?.perSecond ?? 0)))
  const rows = [
    ['bare undici loop', ...cellsOf(bare, 1)],
    ...sides.map(({ name }, index) => [name, ...cellsOf(rounds[index] ?? [], ratios(rounds[index] ?? []))]),
  ]
  const head = ['', 'deliveries/s', 'of bare', 'sender CPU us', 'PostgreSQL', 'receiver', 'other cores', 'wrong']
  console.log(table(head, rows))
  const cost = median((rounds[0] ?? []).map(({ cpuMs }) => cpuMs.get('service') ?? 0))
  console.log(`\n  ${profileSentence(profiled, cost)}`)
  return sum([...rounds.flat(), ...bare].map(({ wrong }) => wrong)) + missed(rounds[0] ?? [], ratios(rounds[0] ?? []))
}

function profileOf(ground: WebhookGround, sides: readonly Side[], deliveries: number): Promise<Map<string, number>> {
  return ground.service.child.profileDuring(async () => {
    for (const side of sides.slice(0, 1)) await runRound(ground, side, deliveries)
  })
}

function missed(rounds: readonly Round[], ratio: number): number {
  const perSecond = median(rounds.map((round) => round.perSecond))
  return (
    checkTarget('deliveries a second', perSecond, { min: perSecondMin }) +
    checkTarget("part of the bare loop's rate", ratio, { min: ratioMin })
  )
}

function cellsOf(rounds: readonly Round[], ratio: number): string[] {
  const mid = (read: (round: Round) => number) => figure(median(rounds.map(read)))
  const cpu = (name: string) => mid(({ cpuMs }) => 1_000 * (cpuMs.get(name) ?? Number.NaN))
  return [
    mid(({ perSecond }) => perSecond),
    figure(ratio),
    cpu('service'),
    cpu('PostgreSQL'),
    cpu('receiver'),
    mid(({ coresElsewhere }) => coresElsewhere),
    String(sum(rounds.map(({ wrong }) => wrong))),
  ]
}

async function runBare({ receiver }: WebhookGround, posts: number): Promise<Round> {
  const used = watchCpu([{ name: 'receiver', pid: receiver.child.pid }])
  const child = await startChild('bare-posts.ts', {
    BENCH_PORT: String(receiver.port),
    BENCH_POSTS: String(posts),
    BENCH_CONNECTIONS: String(bareConnections),
    BENCH_BODY: JSON.stringify({ eventId: 'evt_01h455vb4pex5vsknk084sn02q', ...eventOf(types[0] ?? '', 0) }),
  })
  const receiving = used().byName.get('receiver') ?? 0
  const [perSecond, cpuMs] = [Number(child.ready('perSecond')), Number(child.ready('cpuMs'))]
  await child.stop()
  const cpu = new Map([['service', cpuMs] as const, ['receiver', receiving / posts] as const])
  return { perSecond, cpuMs: cpu, coresElsewhere: Number.NaN, wrong: 0 }
}

async function runRound(ground: WebhookGround, { types: own }: Side, deliveries: number): Promise<Round> {
  const hooks: Hook[] = []
  for (const type of own) hooks.push(await ground.hook(`/rate/${type}`, [type]))
  const arrivedBefore = await ground.countArrived()
  const events = Array.from({ length: deliveries }, (_, at) => eventOf(own[at % own.length] ?? '', at))
  const { ids } = await ground.publish(events)
  const used = watchCpu([...ground.service.watched, { name: 'receiver', pid: ground.receiver.child.pid }])
  const began = performance.now()
  await untilRecorded(ground, hooks, arrivedBefore + deliveries)
  const ms = performance.now() - began
  const cpu = used()
  const arrived = await ground.arrivedSince(arrivedBefore)
  const { attempts } = await ground.recorded(hooks)
  const unsigned = await ground.countUnsigned(arrived, hooks)
  for (const hook of hooks) await ground.deleteHook(hook)
  return {
    perSecond: (deliveries / ms) * 1_000,
    cpuMs: new Map([...cpu.byName].map(([name, value]) => [name, value / deliveries])),
    coresElsewhere: cpu.elsewhere / ms,
    wrong: countAmiss(ids, arrived) + Math.abs(attempts - deliveries) + unsigned,
  }
}

/** Lost, twice, or sent by nobody. */
function countAmiss(sent: readonly string[], arrived: readonly Arrived[]): number {
  const ids = new Set(sent)
  const known = new Set(arrived.flatMap(({ eventId }) => (ids.has(eventId) ? [eventId] : [])))
  return ids.size - known.size + (arrived.length - known.size)
}

/** Waits until all have arrived and what became of them is in the database, or the time is over. */
async function untilRecorded(ground: WebhookGround, hooks: readonly Hook[], arrivals: number): Promise<void> {
  const end = performance.now() + roundMsMax
  while ((await ground.countArrived()) < arrivals && performance.now() < end) await pause(pollMs)
  const isDone = async () => (await ground.recorded(hooks)).waiting === 0
  while (!(await isDone()) && performance.now() < end) await pause(pollMs)
}

/** As large as what a payment's event says. */
function eventOf(type: string, number: number): NewEvent {
  const payload = {
    paymentId: 'pay_01h455vb4pex5vsknk084sn02q',
    walletId: 'byw_01h455vb4pex5vsknk084sn02q',
    amount: String(number),
    token: 'USDC',
    chain: 'base-sepolia',
    payer: `0x${'a'.repeat(40)}`,
    txHash: `0x${'b'.repeat(64)}`,
    settledAt: '2026-01-01T00:00:00.000Z',
  }
  return { type, payload }
}
