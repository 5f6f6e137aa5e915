import { type Address, formatAmount, sameAddress, zeroAddress } from '@purser/protocol'
import type { Chain } from '../../chain/port.ts'
import type { PlannedCall, RouteQuote, RouteRequest, RoutingPartner } from '../../partners/routing/port.ts'
import { encodeAllowance, encodeApprove } from '../../platform/contract-calls.ts'
import type { Coin } from '../funds/index.ts'
import { fail } from './errors.ts'
import type { Ctx, PlannedStep } from './ports.ts'
import { proveCall } from './proof.ts'

/** Most that may be lost between the quote and the arrival, in hundredths of a percent. */
export const slippageBps = 50
/** Gas reserved for a partner's call that cannot be simulated before its approval is in a block; a call that needs more is not sent. */
const partnerGasMax = 800_000n
/** Gas of an approval that cannot be simulated before another is in a block. */
const approvalGas = 100_000n

/** Requests a quote from the partner; accepts only one for exactly this request. Nothing moves. */
async function requestQuote(
  ctx: Pick<Ctx, 'clock' | 'log' | 'routingPartners' | 'tenant'>,
  name: string,
  request: RouteRequest,
): Promise<RouteQuote> {
  const quoted = await partnerNamed(ctx, name).quote(request)
  if (!quoted.ok && quoted.undecodedCall !== undefined)
    ctx.log.warn({ partner: name, call: quoted.undecodedCall }, 'a partner offers a call that is not supported here')
  if (!quoted.ok && quoted.reason === 'recipient-refused') throw fail('transfer-reverted', { reason: quoted.words })
  if (!quoted.ok && quoted.reason !== 'unsafe') throw fail('no-route', { partner: name, reason: quoted.reason })
  const unsafe = quoted.ok ? whyNotTaken(quoted.quote, request, ctx.clock.now()) : quoted.words
  if (!quoted.ok || unsafe !== undefined) {
    ctx.log.error({ partner: name, unsafe }, 'a partner requested calls that this service does not sign')
    throw fail('partner-unavailable', { partner: name, reason: 'unsafe-call' })
  }
  return quoted.quote
}

/**
 * Returns why a quote is refused; the adapter's guard has already checked it against the partner's list of contracts. These rules apply to every
 * partner: at most one approval, of the exact amount and to the contract that is then called; no coin but the sent amount; and no expected amount
 * below the slippage.
 */
function whyNotTaken(quote: RouteQuote, request: RouteRequest, now: Date): string | undefined {
  const { from, rawAmount } = request
  const isCoin = sameAddress(from.token.address, zeroAddress)
  const call = quote.calls.at(-1)
  const approvals = quote.calls.slice(0, -1)
  if (call === undefined || approvals.length > (isCoin ? 0 : 1)) return 'number-of-calls'
  if (quote.calls.some(({ chainId }) => chainId !== from.network.chainId)) return 'wrong-chain'
  if (sameAddress(call.to, from.token.address)) return 'calls-the-token'
  if (call.value !== (isCoin ? rawAmount : 0n)) return 'value-differs'
  const exact = encodeApprove(call.to, rawAmount)
  for (const { to, value, data } of approvals)
    if (!sameAddress(to, from.token.address) || value !== 0n || data.toLowerCase() !== exact)
      return 'approval-not-exact'
  if (quote.rawOutMin <= 0n || quote.rawOutMin > quote.rawOut) return 'minimum-senseless'
  const least = (quote.rawOut * (10_000n - BigInt(request.slippageBps))) / 10_000n
  if (quote.rawOutMin < least) return 'minimum-too-low'
  return quote.expiresAt <= now ? 'expired' : undefined
}

/**
 * The partner's calls as steps, once a simulation has proven their effect. A call that needs its approval first is simulated again when
 * that is in a block. On Tempo both are one transaction, which reverts as a whole.
 */
export async function partnerSteps(
  ctx: Pick<Ctx, 'log' | 'routingPartners' | 'tenant'>,
  chain: Chain,
  request: RouteRequest,
  quote: RouteQuote,
): Promise<PlannedStep[]> {
  const sender = request.fromAddress
  const calls = await withZeroFirst(chain, sender, quote.calls)
  await refuseUnproven(ctx, chain, request, { ...quote, calls })
  if (chain.network.nativeCoin === null) return [await oneStep(chain, sender, quote)]
  return Promise.all(
    calls.map(async ({ to, value, data }, index): Promise<PlannedStep> => {
      const kind = index === calls.length - 1 ? 'partner' : 'approve'
      const step = { kind, sender, to, value, data } as const
      if (index > 0) return { ...step, gasLimit: kind === 'partner' ? partnerGasMax : approvalGas }
      const trial = await chain.tryCall({ from: sender, to, value, data })
      if (!trial.ok) throw fail('transfer-reverted', { reason: trial.reason })
      return { ...step, gasLimit: trial.gasLimit }
    }),
  )
}

/** If the contract has an allowance and the token refuses to replace it (USDT), it is set to zero first. */
async function withZeroFirst(
  chain: Chain,
  owner: Address,
  calls: readonly PlannedCall[],
): Promise<readonly PlannedCall[]> {
  const [approval, call] = calls
  if (approval === undefined || call === undefined) return calls
  const allowed = await allowanceOf(chain, approval.to, { owner, spender: call.to })
  if (allowed === 0n || (await chain.tryCall({ from: owner, ...approval })).ok) return calls
  return [{ ...approval, data: encodeApprove(call.to, 0n) }, ...calls]
}

async function refuseUnproven(
  ctx: Pick<Ctx, 'log' | 'routingPartners' | 'tenant'>,
  chain: Chain,
  request: RouteRequest,
  { partner: name, calls }: RouteQuote,
): Promise<void> {
  const call = calls.at(-1)
  if (call === undefined) throw new Error('a quote without a call')
  const proof = await proveCall(ctx, chain, partnerNamed(ctx, name), { request, before: calls.slice(0, -1), call })
  if (proof.outcome === 'refused') throw fail('transfer-reverted', { reason: proof.reason })
  if (proof.outcome === 'unable') throw fail('partner-unavailable', { partner: name, reason: 'cannot-simulate' })
  if (proof.outcome === 'differs') throw fail('partner-unavailable', { partner: name, reason: 'unsafe-call' })
}

function partnerNamed(ctx: Pick<Ctx, 'routingPartners' | 'tenant'>, name: string): RoutingPartner {
  const partner = ctx.routingPartners[ctx.tenant.environment][name]
  if (partner === undefined) throw fail('partner-unavailable')
  return partner
}

/** Most bytes of call data in one of Tempo's transactions, which are parsed again when they are signed. */
const callBytesMax = 4_096

async function oneStep(chain: Chain, sender: Address, { partner, calls }: RouteQuote): Promise<PlannedStep> {
  const all = calls.map(({ to, value, data }) => ({ to, value, data }))
  const last = all.at(-1)
  const hexDigits = all.reduce((sum, { data }) => sum + data.length - 2, 0)
  if (last === undefined || hexDigits > callBytesMax * 2)
    throw fail('partner-unavailable', { partner, reason: 'unsafe-call' })
  const trial = await chain.tryCalls(sender, all)
  if (!trial.ok) throw fail('transfer-reverted', { reason: trial.reason })
  return { kind: 'partner', sender, ...last, callsBefore: all.slice(0, -1), gasLimit: trial.gasLimit }
}

/** The contract's allowance for a token of the account, as of the latest block, as a majority of the nodes reports. */
export async function allowanceOf(
  chain: Chain,
  token: Address,
  { owner, spender }: { readonly owner: Address; readonly spender: Address },
): Promise<bigint> {
  const response = await chain.agreedCall(token, encodeAllowance({ owner, spender }))
  return /^0x[0-9a-f]{64}$/i.test(response) ? BigInt(response) : 0n
}

/**
 * Requests a partner's quote whose call brings at least the floor. If the price suffices and only the slippage does not, requests again
 * with the slippage that the floor permits.
 */
export async function requestQuoteAbove(
  ctx: Pick<Ctx, 'clock' | 'log' | 'routingPartners' | 'tenant'>,
  name: string,
  request: RouteRequest,
  { floor, toCoin }: { readonly floor: bigint; readonly toCoin: Coin },
): Promise<RouteQuote> {
  const first = await requestQuote(ctx, name, request)
  if (first.rawOutMin >= floor) return first
  if (first.rawOut < floor) throw priceTooLow(toCoin, { rawOffered: first.rawOut, floor })
  const slippageBps = Number(((first.rawOut - floor) * 10_000n) / first.rawOut)
  const second = await requestQuote(ctx, name, { ...request, slippageBps })
  if (second.rawOutMin < floor) throw priceTooLow(toCoin, { rawOffered: second.rawOutMin, floor })
  return second
}

/** The refusal of a quote whose order another transfer pays for. Nothing of it was signed. */
export function orderTaken({ log }: Pick<Ctx, 'log'>, { quote }: { readonly quote: RouteQuote | undefined }): Error {
  const { partner, orderId } = quote ?? {}
  log.error({ partner, orderId }, 'a partner quoted an order that another transfer pays for')
  return fail('partner-unavailable', { partner, reason: 'unsafe-call' })
}

export function priceTooLow(
  { symbol, decimals }: Coin,
  { rawOffered, floor }: { readonly rawOffered: bigint; readonly floor: bigint },
): Error {
  return fail('price-too-low', {
    token: symbol,
    offered: formatAmount(rawOffered, decimals),
    minimum: formatAmount(floor, decimals),
  })
}
