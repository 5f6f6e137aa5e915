import { createHash } from 'node:crypto'
import { type Address, checksumAddress, formatAmount } from '@purser/protocol'
import { z } from 'zod'
import type { Agreed, NewPayout, OffRamp, OffRampAdapter, OffRampAdapterDeps, Payout } from './port.ts'
import { whyNotReference } from './references.ts'

/** Milliseconds from the request to each state, once the tokens have arrived. */
export const sandboxMs = { converted: 2_000, ended: 4_000, returned: 10_000 } as const

/** Scenarios by the first two decimals of the amount; all other amounts complete. */
const scenarios = new Map([
  ['01', 'undeliverable'],
  ['02', 'returned'],
  ['03', 'in-review'],
  ['04', 'refused'],
] as const)

const Scenario = z.enum(['completes', 'undeliverable', 'returned', 'in-review'])
type Scenario = z.output<typeof Scenario>

/** The whole payout is encoded in its id, so that all processes agree on it without storage. */
const Ticket = z.strictObject({
  key: z.string(),
  at: z.int(),
  scenario: Scenario,
  network: z.string(),
  token: z.string().regex(/^0x[0-9a-fA-F]{40}$/),
  decimals: z.int().min(0).max(36),
  raw: z.string().regex(/^\d{1,78}$/),
})
type Ticket = z.output<typeof Ticket>

const name = 'sandbox'
const hasCustomers = false
const prefix = 'sandbox_'

export type SandboxDeps = Pick<OffRampAdapterDeps, 'clock' | 'balanceOf'>

/**
 * The partner of the test environment: it receives real test tokens at one address per payout, pays no bank, and advances through the states by the
 * clock. The first two decimals of the amount select the outcome (docs/partners.md). The addresses have no known key, so failed payouts are not
 * refunded.
 */
export function createSandboxOffRamp(deps: SandboxDeps): OffRamp {
  return {
    name,
    hasCustomers,
    whyNotTaken: () => undefined,
    whyNotReference,
    deleteAccount: async () => undefined,
    createAccount: async ({ key }) => ({ ok: true, value: { accountId: `${prefix}${key}`, isActive: true } }),
    createPayout: async (request) => {
      const ticket = ticketOf(request)
      if ('ok' in ticket) return ticket
      return { ok: true, value: await payoutAt(deps, idOf(ticket), ticket) }
    },
    async readPayout(payoutId) {
      const ticket = readTicket(payoutId)
      return ticket === undefined ? undefined : payoutAt(deps, payoutId, ticket)
    },
  }
}

/** The sandbox pays out every withdrawal of the test environment. It needs no account. */
export const sandboxOffRamp: OffRampAdapter<object> = {
  name,
  environment: 'test',
  hasCustomers,
  readAccount: () => ({}),
  open: createSandboxOffRamp,
}

function ticketOf(request: NewPayout): Ticket | Agreed<never> {
  const { decimals, address } = request.token
  const cents = formatAmount(request.rawAmount, decimals).split('.')[1]?.padEnd(2, '0').slice(0, 2)
  const scenario = [...scenarios].find(([digits]) => digits === cents)?.[1] ?? 'completes'
  if (scenario === 'refused')
    return { ok: false, refusal: { code: 'account-closed', message: 'The sandbox refuses this amount by design.' } }
  return {
    key: request.key,
    at: request.requestedAt.getTime(),
    scenario,
    network: request.network,
    token: address,
    decimals,
    raw: request.rawAmount.toString(),
  }
}

async function payoutAt(deps: SandboxDeps, payoutId: string, ticket: Ticket): Promise<Payout> {
  const address = addressOf(payoutId)
  const rawAmount = BigInt(ticket.raw)
  const base = { payoutId, deposit: { address, rawAmount } }
  const rawBalance = await deps.balanceOf(ticket.network, checksumAddress(ticket.token), address)
  if (rawBalance < rawAmount)
    return { ...base, state: 'pending_conversion', partnerState: 'awaiting-deposit', awaitsDeposit: true }
  const amount = formatAmount(rawAmount, ticket.decimals)
  const receipt = { initialAmount: amount, feeAmount: '0', finalAmount: amount, exchangeRate: '1' }
  const step = stepAt(ticket.scenario, deps.clock.now().getTime() - ticket.at)
  return { ...base, ...step, receipt, awaitsDeposit: false }
}

type Step = Pick<Payout, 'state' | 'partnerState' | 'failure'>

/** A payout's state after this time since its request. */
function stepAt(scenario: Scenario, elapsedMs: number): Step {
  if (scenario === 'in-review') return { state: 'pending_conversion', partnerState: 'in-review' }
  if (elapsedMs < sandboxMs.converted) return { state: 'pending_conversion', partnerState: 'converting' }
  if (elapsedMs < sandboxMs.ended) return { state: 'conversion_complete', partnerState: 'paying' }
  if (scenario === 'undeliverable')
    return failedStep('undeliverable', 'The sandbox does not deliver this amount by design.')
  if (scenario === 'returned' && elapsedMs >= sandboxMs.returned)
    return failedStep('returned', 'The sandbox returns this amount after its arrival by design.')
  return { state: 'completed', partnerState: 'paid' }
}

function failedStep(partnerState: string, reason: string): Step {
  return { state: 'failed', partnerState, failure: { reason, refund: 'held' } }
}

function idOf(ticket: Ticket): string {
  return `${prefix}${Buffer.from(JSON.stringify(ticket)).toString('base64url')}`
}

function readTicket(payoutId: string): Ticket | undefined {
  if (!payoutId.startsWith(prefix)) return undefined
  try {
    return Ticket.parse(JSON.parse(Buffer.from(payoutId.slice(prefix.length), 'base64url').toString('utf8')))
  } catch {
    return undefined
  }
}

function addressOf(payoutId: string): Address {
  const digest = createHash('sha256').update(`sandbox off-ramp deposit ${payoutId}`).digest('hex')
  return checksumAddress(`0x${digest.slice(0, 40)}`)
}
