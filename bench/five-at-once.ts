import { auditChain, type ChainFacts } from './chain-audit.ts'
import type { Ground } from './ground.ts'
import { postRequest, runLoad } from './load.ts'
import { signPayments } from './payments.ts'
import { verifyAll } from './settle-runs.ts'
import { facilitatorRequest, type PurserSide, type Side } from './sides.ts'

/** One payment that five callers settle at the same moment. */
export interface FiveAtOnce {
  readonly responses: readonly string[]
  readonly facts: ChainFacts
}

const copies = 5
const msMax = 40_000

export async function fiveAtOfficial(ground: Ground, side: Side): Promise<FiveAtOnce> {
  const payments = signPayments(ground.payers, ground.bill, 1)
  const requests = payments.flatMap((payment) =>
    Array(copies).fill(facilitatorRequest('/settle', ground.bill, payment)),
  )
  return settleAtOnce(ground, side, { payments, requests })
}

export async function fiveAtOurs(ground: Ground, side: PurserSide): Promise<FiveAtOnce> {
  const payments = signPayments(ground.payers, ground.bill, 1)
  const verified = await verifyAll(side, payments)
  const requests = verified.flatMap(({ request }) =>
    Array(copies).fill(postRequest('/payments/settle', request, side.headers)),
  )
  return settleAtOnce(ground, side, { payments, requests })
}

/** Whether the result is correct: five equal successes, one transaction, and the money moved once. */
export function isOneOfFive({ responses, facts }: FiveAtOnce): boolean {
  const equal =
    responses.length === copies && new Set(responses).size === 1 && responses[0]?.startsWith('200 ') === true
  return equal && facts.used === 1 && facts.received === 1 && facts.transactions === 1 && facts.reverted === 0
}

export function notifyFive(name: string, five: FiveAtOnce): string {
  const { transactions, reverted, gas, received } = five.facts
  const different = new Set(five.responses).size
  const verdict = isOneOfFive(five) ? 'as it should be' : 'not as it should be'
  return (
    `  ${name}: ${five.responses.length} answers, ${different} different; ${transactions} transactions, ${reverted} reverted, ` +
    `${gas} gas, paid ${received} times: ${verdict}`
  )
}

type Prepared = { payments: ReturnType<typeof signPayments>; requests: readonly Buffer[] }

async function settleAtOnce(ground: Ground, side: Side, { payments, requests }: Prepared): Promise<FiveAtOnce> {
  const audit = await auditChain(ground, side.settler)
  const { responses } = await runLoad({ port: side.port, connections: copies, requests, msMax })
  return { responses: responses.map(({ status, body }) => `${status} ${body}`), facts: await audit(payments) }
}
