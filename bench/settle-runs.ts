import { setTimeout as delay } from 'node:timers/promises'
import { auditChain, type ChainFacts } from './chain-audit.ts'
import { type CpuUse, watchCpu } from './cpu.ts'
import { quantile } from './figures.ts'
import type { Ground } from './ground.ts'
import { getRequest, type LoadResponse, postRequest, runLoad } from './load.ts'
import { parseObject } from './parse.ts'
import { type SignedPayment, signPayments } from './payments.ts'
import { facilitatorRequest, type PurserSide, type Side } from './sides.ts'

/** The result of a burst of settlements. */
export interface SettleRun {
  readonly requested: number
  /** As reported by the service. */
  readonly settled: number
  readonly facts: ChainFacts
  readonly perSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  /** Milliseconds per settled payment, by process. */
  readonly cpuMs: ReadonlyMap<string, number>
  /** Cores used by other work on the machine meanwhile. */
  readonly coresElsewhere: number
  readonly fault: string | undefined
}

const inFlight = 64
const settleMsMax = 60_000
const lookMs = 100

/** Payments that did not arrive, or arrived without being reported; the higher of the two counts. */
export function lostOf({ requested, settled, facts }: SettleRun): number {
  return requested - Math.min(settled, facts.used, facts.received)
}

/** A burst at the official facilitator: each settlement is one request, and its response is final. */
export async function settleOfficially(ground: Ground, side: Side, count: number): Promise<SettleRun> {
  const payments = signPayments(ground.payers, ground.bill, count)
  const requests = payments.map((payment) => facilitatorRequest('/settle', ground.bill, payment))
  const audit = await auditChain(ground, side.settler)
  const used = watchCpu([...side.watched, { name: 'anvil', pid: ground.chain.pid }])
  const { responses, elapsedMs } = await runLoad({
    port: side.port,
    connections: inFlight,
    requests,
    msMax: settleMsMax,
  })
  const cpu = used()
  const isRight = ({ status, body }: LoadResponse) => status === 200 && parseObject(body).success === true
  const settled = responses.filter(isRight).length
  return {
    ...summary(responses, { cpu, settled, elapsedMs }),
    requested: count,
    settled,
    facts: await audit(payments),
    fault: responses.find((response) => !isRight(response))?.body.slice(0, 300),
  }
}

/**
 * A burst at our service, either waiting for each outcome or requesting it asynchronously. Verification happens first
 * and is not counted.
 */
export async function settleOurs(
  ground: Ground,
  side: PurserSide,
  { count, waiting }: { count: number; waiting: boolean },
): Promise<SettleRun> {
  const payments = signPayments(ground.payers, ground.bill, count)
  const verified = await verifyAll(side, payments)
  const headers = waiting ? side.headers : { ...side.headers, prefer: 'respond-async' }
  const requests = verified.map(({ request }) => postRequest('/payments/settle', request, headers))
  const audit = await auditChain(ground, side.settler)
  const used = watchCpu([...side.watched, { name: 'anvil', pid: ground.chain.pid }])
  const beganAt = Date.now()
  const { responses } = await runLoad({ port: side.port, connections: inFlight, requests, msMax: settleMsMax })
  await waitForLast(side, verified.at(-1)?.paymentId ?? '', beganAt + settleMsMax)
  const cpu = used()
  const ends = await waitForAll(
    side,
    verified.map(({ paymentId }) => paymentId),
    beganAt + settleMsMax,
  )
  const elapsedMs = ends.reduce((latest, settledAt) => Math.max(latest, settledAt), beganAt) - beganAt
  const isRight = ({ status }: LoadResponse) => status === 200 || status === 202
  const wrong = responses.find((response) => !isRight(response))
  return {
    ...summary(responses, { cpu, settled: ends.length, elapsedMs }),
    requested: count,
    settled: ends.length,
    facts: await audit(payments),
    fault: wrong && `${wrong.status} ${wrong.body.slice(0, 300)}`,
  }
}

/** One more burst at our service, not counted, which shows where the service spends its time. */
export async function profileOurs(ground: Ground, side: PurserSide, count: number): Promise<Map<string, number>> {
  const verified = await verifyAll(side, signPayments(ground.payers, ground.bill, count))
  const headers = { ...side.headers, prefer: 'respond-async' }
  const requests = verified.map(({ request }) => postRequest('/payments/settle', request, headers))
  return side.child.profileDuring(async () => {
    await runLoad({ port: side.port, connections: inFlight, requests, msMax: settleMsMax })
    await waitForLast(side, verified.at(-1)?.paymentId ?? '', Date.now() + settleMsMax)
  })
}

type Summed = { cpu: CpuUse; settled: number; elapsedMs: number }

function summary(responses: readonly LoadResponse[], { cpu, settled, elapsedMs }: Summed) {
  const ms = responses.map((response) => response.ms)
  return {
    perSecond: (settled / Math.max(1, elapsedMs)) * 1_000,
    p50Ms: quantile(ms, 0.5),
    p99Ms: quantile(ms, 0.99),
    coresElsewhere: cpu.elsewhere / Math.max(1, elapsedMs),
    cpuMs: new Map([...cpu.byName].map(([name, used]) => [name, used / Math.max(1, settled)])),
  }
}

export interface Verified {
  readonly paymentId: string
  /** The body of its settlement request. */
  readonly request: string
}

/** Verifies payments at ours; throws when one is refused, since its settlement could not be measured. */
export async function verifyAll(side: PurserSide, payments: readonly SignedPayment[]): Promise<Verified[]> {
  const requests = payments.map(side.verifyRequest)
  const { responses } = await runLoad({ port: side.port, connections: 32, requests, msMax: settleMsMax })
  if (responses.length < payments.length) throw new Error('verifying the payments to settle took too long')
  return responses.map(({ status, body }) => {
    const { paymentId, settlementToken } = parseObject(body)
    if (typeof paymentId !== 'string') throw new Error(`a payment was not verified: ${status} ${body.slice(0, 300)}`)
    return { paymentId, request: JSON.stringify({ paymentId, settlementToken }) }
  })
}

/** Waits until the last requested payment is final: a cheap sign that the burst is nearly over. */
async function waitForLast(side: PurserSide, paymentId: string, deadline: number): Promise<void> {
  while (Date.now() < deadline && (await endsOf(side, [paymentId])).length === 0) await delay(lookMs)
}

/**
 * Returns the times at which payments were settled, according to the service, in milliseconds since 1970. Payments that miss the deadline are
 * omitted.
 */
async function waitForAll(side: PurserSide, paymentIds: readonly string[], deadline: number): Promise<number[]> {
  for (;;) {
    const ends = await endsOf(side, paymentIds)
    if (ends.length === paymentIds.length || Date.now() > deadline) return ends
    await delay(lookMs)
  }
}

async function endsOf({ port, headers }: PurserSide, paymentIds: readonly string[]): Promise<number[]> {
  const requests = paymentIds.map((paymentId) => getRequest(`/payments/${paymentId}`, headers))
  const { responses } = await runLoad({ port, connections: 16, requests, msMax: settleMsMax })
  return responses.flatMap(({ body }) => {
    const { status, settledAt } = parseObject(body)
    return status === 'settled' && typeof settledAt === 'string' ? [Date.parse(settledAt)] : []
  })
}
