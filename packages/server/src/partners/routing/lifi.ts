import { type Hex, isHex, parseAddress, parseRaw, sameAddress, zeroAddress } from '@purser/protocol'
import { z } from 'zod'
import { type Clock, instantOf } from '../../platform/clock.ts'
import { encodeApprove } from '../../platform/contract-calls.ts'
import { fail } from '../errors.ts'
import { partnerAddress as address, type PartnerApi, type PartnerSettings, requestPartner } from '../partner-request.ts'
import { readKeyedApi } from '../settings.ts'
import { changesOf, type GuardRules, leastOf, refusedFor, whyNotSigned } from './guard.ts'
import { readLifiCall } from './lifi-calls.ts'
import { lifiContracts, lifiDiamond } from './lifi-contracts.ts'
import { lifiStatusOf } from './lifi-status.ts'
import type { PlannedCall, Quoted, RouteRequest, RoutingAdapter, RoutingDeps, RoutingPartner } from './port.ts'

const timeoutMsDefault = 20_000
const responseBytesMax = 2_097_152
const quoteMs = 60_000

const raw = z.string().transform((text, ctx) => {
  const value = /^0x[0-9a-fA-F]{1,64}$/.test(text) ? BigInt(text) : parseRaw(text)
  if (typeof value === 'bigint') return value
  ctx.addIssue({ code: 'custom', message: 'must be a whole number' })
  return z.NEVER
})
const Token = z.object({ address, chainId: z.int(), symbol: z.string().max(64) })

/** A step as `GET /quote` answers it. Fields that are not parsed here are not used. */
const Step = z.object({
  tool: z.string().min(1).max(128),
  action: z.object({ fromToken: Token, toToken: Token, fromAmount: raw, toAddress: address }),
  estimate: z.object({
    toAmount: raw,
    toAmountMin: raw,
    approvalAddress: address,
    executionDuration: z.number().min(0).max(1_000_000),
    feeCosts: z
      .array(z.object({ name: z.string().max(128), amount: raw, token: z.object({ symbol: z.string().max(64) }) }))
      .max(32)
      .optional(),
  }),
  transactionRequest: z.object({
    to: address,
    chainId: z.int(),
    data: z.string().max(262_144).refine(isHex),
    value: raw,
  }),
})
type Step = z.output<typeof Step>

const Status = z.object({
  status: z.string().max(64),
  substatus: z.string().max(128).nullish(),
  toAddress: z.string().max(128).nullish(),
  receiving: z
    .object({
      chainId: z.int().optional(),
      txHash: z.string().max(128).optional(),
      amount: z.string().max(96).optional(),
      token: z.object({ address: z.string().max(64) }).optional(),
    })
    .nullish(),
})

const name = 'lifi'

/** LI.FI: an aggregator of swaps and bridges. It has no test network. */
export function createLifi({ outbound, clock }: RoutingDeps, settings: PartnerSettings): RoutingPartner {
  const limits = { timeoutMs: settings.timeoutMs ?? timeoutMsDefault, bytesMax: responseBytesMax }
  const headers = { 'x-lifi-api-key': settings.apiKey }
  const api: PartnerApi = { outbound, name, baseUrl: settings.baseUrl, headers, limits }
  return {
    name,
    contracts: lifiContracts,
    async quote(request) {
      const unsupported = unsupportedReason(request)
      if (unsupported !== undefined) return { ok: false, reason: 'no-route', words: unsupported }
      const response = await requestPartner(api, { method: 'GET', path: `/quote?${queryOf(request)}` }, Step)
      return response.ok ? quotedFrom(response.value, request, clock) : declinedFrom(response.declined.json)
    },
    expects: (request, call) => changesOf(call, request, rulesOf(request)),
    async status({ request, rawOutMin, reference, txHash }) {
      const { from, to } = request
      const isSwap = from.network.chainId === to.network.chainId
      const query = new URLSearchParams({
        txHash,
        ...(isSwap ? {} : { bridge: reference }),
        fromChain: String(from.network.chainId),
        toChain: String(to.network.chainId),
      })
      const response = await requestPartner(api, { method: 'GET', path: `/status?${query}` }, Status)
      // Before the transaction is mined, LI.FI may return 404 instead of NOT_FOUND.
      if (!response.ok && response.declined.status === 404) return { state: 'pending', partnerStatus: 'NOT_FOUND' }
      if (!response.ok)
        throw fail('partner-unavailable', {}, new Error(`lifi refused to return a status: ${response.declined.status}`))
      const received = { ...response.value, receiving: receivingOf(response.value), toAddress: payeeIn(response.value) }
      return lifiStatusOf(received, { ...request, rawOutMin })
    },
  }
}

/** LI.FI serves the routes that no other partner serves. */
export const lifi: RoutingAdapter<{ readonly lifi?: PartnerSettings | undefined }> = {
  name,
  environment: 'live',
  readAccount: (reader) => ({ lifi: readKeyedApi(reader, { name: 'LIFI', baseUrl: 'https://li.quest/v1' }) }),
  whyServing: () => 'LI.FI finds the route',
  open: (deps, account) => account.lifi && createLifi(deps, account.lifi),
}

/** Reason to refuse without a request. A bridge to a native coin is refused because the form in which it arrives is unknown. */
function unsupportedReason({ from, to }: RouteRequest): string | undefined {
  if (![from, to].every(({ network }) => network.partners.includes(name))) return 'LI.FI is not used for that chain.'
  const isBridge = from.network.chainId !== to.network.chainId
  return isBridge && sameAddress(to.token.address, zeroAddress) ? 'LI.FI bridges only tokens to tokens.' : undefined
}

function queryOf({ from, to, rawAmount, fromAddress, toAddress, slippageBps }: RouteRequest): string {
  return new URLSearchParams({
    fromChain: String(from.network.chainId),
    toChain: String(to.network.chainId),
    fromToken: from.token.address,
    toToken: to.token.address,
    fromAmount: rawAmount.toString(),
    fromAddress,
    toAddress,
    slippage: String(slippageBps / 10_000),
    order: 'CHEAPEST',
    allowDestinationCall: 'false',
    // The only bridge whose calls have a decoder.
    ...(from.network.chainId === to.network.chainId ? {} : { allowBridges: 'across' }),
  }).toString()
}

function quotedFrom(step: Step, request: RouteRequest, clock: Clock): Quoted {
  const { estimate, tool } = step
  if (estimate.toAmountMin < leastOf(estimate.toAmount, request.slippageBps))
    return { ok: false, reason: 'unsafe', words: 'minimum-too-low' }
  const calls = callsOf(step, request)
  const differs = quoteMismatch(step, request)
  if (differs !== undefined) return { ok: false, reason: 'unsafe', words: differs }
  const unsafe = whyNotSigned(calls, request, { ...rulesOf(request), rawOutMin: estimate.toAmountMin })
  if (unsafe !== undefined) return refusedFor(unsafe, calls)
  return {
    ok: true,
    quote: {
      partner: name,
      reference: tool,
      rawOut: estimate.toAmount,
      rawOutMin: estimate.toAmountMin,
      fees: (estimate.feeCosts ?? []).map(({ name, token, amount }) => {
        return { name, symbol: token.symbol, rawAmount: amount }
      }),
      etaSeconds: Math.ceil(estimate.executionDuration),
      expiresAt: instantOf(clock.now().getTime() + quoteMs),
      calls,
    },
  }
}

/** Checks the quote's own fields, in addition to its call data. */
function quoteMismatch({ action }: Step, { from, to, rawAmount, toAddress }: RouteRequest): string | undefined {
  if (action.fromAmount !== rawAmount || !isEnd(action.fromToken, from)) return 'amount-differs'
  if (!isEnd(action.toToken, to)) return 'destination-differs'
  return sameAddress(action.toAddress, toAddress) ? undefined : 'recipient-differs'
}

function isEnd(
  token: Step['action']['fromToken'],
  { network, token: { address: requested } }: RouteRequest['from'],
): boolean {
  return token.chainId === network.chainId && sameAddress(token.address, requested)
}

/** We build the approval for the exact amount; the guard checks LI.FI's spender. */
function callsOf({ transactionRequest, estimate }: Step, { from, rawAmount }: RouteRequest): readonly PlannedCall[] {
  const send = {
    chainId: transactionRequest.chainId,
    to: transactionRequest.to,
    value: transactionRequest.value,
    data: transactionRequest.data,
  }
  if (sameAddress(from.token.address, zeroAddress)) return [send]
  const data = encodeApprove(estimate.approvalAddress, rawAmount)
  return [{ chainId: from.network.chainId, to: from.token.address, value: 0n, data }, send]
}

function rulesOf({ from }: RouteRequest): GuardRules {
  return { targets: [lifiDiamond], read: (data) => readLifiCall(data, from.network) }
}

/** The paid account. An invalid address never equals the recipient. */
function payeeIn({ toAddress }: z.output<typeof Status>) {
  return typeof toAddress === 'string' ? (parseAddress(toAddress) ?? zeroAddress) : undefined
}

function receivingOf({ receiving }: z.output<typeof Status>) {
  if (receiving === undefined || receiving === null) return undefined
  const rawAmount = receiving.amount === undefined ? undefined : parseRaw(receiving.amount)
  return {
    chainId: receiving.chainId,
    txHash: hashOf(receiving.txHash),
    rawAmount: typeof rawAmount === 'bigint' ? rawAmount : undefined,
    token: receiving.token === undefined ? undefined : parseAddress(receiving.token.address),
  }
}

function hashOf(text: string | undefined): Hex | undefined {
  return text !== undefined && isHex(text) && text.length === 66 ? text : undefined
}

const ErrorBody = z.object({
  code: z.number().optional(),
  errors: z
    .array(z.object({ code: z.string().max(128).optional() }))
    .max(256)
    .optional(),
})

/** The reason for a missing quote, from the error codes of LI.FI's tools. */
function declinedFrom(json: unknown): Quoted {
  const parsed = ErrorBody.safeParse(json)
  const codes = parsed.success ? (parsed.data.errors ?? []).map(({ code }) => code) : []
  if (codes.some((code) => code === 'AMOUNT_TOO_LOW' || code === 'FEES_HIGHER_THAN_AMOUNT'))
    return { ok: false, reason: 'amount-too-low', words: 'Every route has a higher minimum.' }
  if (codes.some((code) => code === 'AMOUNT_TOO_HIGH' || code === 'INSUFFICIENT_LIQUIDITY'))
    return { ok: false, reason: 'amount-too-high', words: 'No route has enough liquidity.' }
  return { ok: false, reason: 'no-route', words: 'LI.FI has no route.' }
}
