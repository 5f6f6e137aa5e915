import { setTimeout as pause } from 'node:timers/promises'
import { Pool } from 'undici'
import { figure, quantile, table } from './figures.ts'
import { parseObject } from './parse.ts'
import { type Hook, now, type WebhookGround } from './webhook-ground.ts'

export interface LatencyPlan {
  /** Of each measurement. */
  readonly events: number
  /** That wait for the endpoint that hangs. */
  readonly queued: number
}

export const fullLatency: LatencyPlan = { events: 4_000, queued: 1_000 }
export const quickLatency: LatencyPlan = { events: 800, queued: 1_000 }

const perSecond = 200
const p95MsMax = 125
const besideRatioMax = 2
const arrivalMsMax = 20_000
const intervalMs = 5

/** The result of one measurement: for each event, the milliseconds from its commit to the receiver's socket. */
interface Latencies {
  readonly name: string
  readonly ms: readonly number[]
  readonly missing: number
}

/**
 * Measures how long an event takes from its commit to its receiver at a steady rate: committed by another process than the one that
 * delivers, caused by a request to that one, and beside an endpoint that never responds and has many deliveries queued. Answers how
 * many events did not arrive and how many targets were missed.
 */
export async function benchWebhookLatency(plan: LatencyPlan, ground: WebhookGround): Promise<number> {
  const quick = await ground.hook('/latency', ['vault.expired', 'vault.persisted'])
  await committedElsewhere(ground, 'warming up', plan.events / 4)
  const alone = await committedElsewhere(ground, 'committed by another process', plan.events)
  const own = await causedByRequests(ground, quick, plan.events)
  const hanging = await ground.hook('/hang/it', ['vault.expiring'])
  await ground.publish(Array.from({ length: plan.queued }, () => ({ type: 'vault.expiring', payload: {} })))
  const beside = await committedElsewhere(ground, `the same, beside one that hangs, ${plan.queued} queued`, plan.events)
  for (const hook of [quick, hanging]) await ground.deleteHook(hook)

  console.log(`\nwebhook latency: event to receiver at ${perSecond} events a second, ${plan.events} of each\n`)
  const rows = [alone, own, beside].map(({ name, ms, missing }) => [
    name,
    ...[0.5, 0.95, 0.99, 1].map((share) => figure(quantile(ms, share))),
    String(missing),
  ])
  console.log(table(['', 'p50 ms', 'p95 ms', 'p99 ms', 'last ms', 'missing'], rows))
  return [alone, own, beside].reduce((sum, { missing }) => sum + missing, 0) + missed(alone, beside)
}

function missed(alone: Latencies, beside: Latencies): number {
  const [p95, p95Beside] = [quantile(alone.ms, 0.95), quantile(beside.ms, 0.95)]
  const faults = [
    ...(p95 < p95MsMax ? [] : [`p95 under ${p95MsMax} ms`]),
    ...(p95Beside <= besideRatioMax * p95 ? [] : [`p95 beside one that hangs within ${besideRatioMax} times that`]),
  ]
  for (const fault of faults) console.log(`  MISSED: ${fault}`)
  return faults.length
}

/** From the moment in which the commit was acknowledged. */
async function committedElsewhere(ground: WebhookGround, name: string, events: number): Promise<Latencies> {
  const began = await ground.countArrived()
  const committed = new Map<string, number>()
  await atRate(events, async () => {
    const { ids, at } = await ground.publish([{ type: 'vault.expired', payload: { vaultId: 'vlt_1' } }])
    for (const id of ids) committed.set(id, at)
  })
  return { name, ...(await waitsOf(ground, '/latency', began, committed)) }
}

/** From the moment in which the request was sent: the commit comes after it, so the measured wait is too long and never too short. */
async function causedByRequests(ground: WebhookGround, { path }: Hook, events: number): Promise<Latencies> {
  const began = await ground.countArrived()
  const requestedAt = new Map<string, number>()
  const { port, headers } = ground.service
  const pool = new Pool(`http://127.0.0.1:${port}`, { connections: 16 })
  const request = {
    method: 'POST',
    path: '/events/trigger',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify({ type: 'vault.persisted' }),
  } as const
  await atRate(events, async () => {
    const at = now()
    const response = await pool.request(request)
    const { id } = parseObject(await response.body.text())
    if (typeof id !== 'string') throw new Error(`no event was triggered: ${response.statusCode}`)
    requestedAt.set(id, at)
  })
  await pool.close()
  return { name: 'caused by a request to the same process', ...(await waitsOf(ground, path, began, requestedAt)) }
}

async function waitsOf(
  ground: WebhookGround,
  path: string,
  began: number,
  since: ReadonlyMap<string, number>,
): Promise<Pick<Latencies, 'ms' | 'missing'>> {
  const end = now() + arrivalMsMax
  let first = new Map<string, number>()
  do {
    const arrived = (await ground.arrivedSince(began)).filter((one) => one.path === path && since.has(one.eventId))
    first = new Map(arrived.toReversed().map(({ eventId, at }) => [eventId, at]))
    if (first.size < since.size) await pause(100)
  } while (first.size < since.size && now() < end)
  return {
    ms: [...first].map(([eventId, at]) => at - (since.get(eventId) ?? Number.NaN)),
    missing: since.size - first.size,
  }
}

/** Begins the work so often, at a steady rate, whether or not what began before has ended; resolves when all has. */
async function atRate(count: number, work: () => Promise<void>): Promise<void> {
  const began = now()
  const working: Promise<void>[] = []
  while (working.length < count) {
    const due = Math.min(count, Math.ceil(((now() - began) / 1_000) * perSecond))
    while (working.length < due) working.push(work())
    await pause(intervalMs)
  }
  await Promise.all(working)
}
