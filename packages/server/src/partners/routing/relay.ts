import {
  type Address,
  type Hex,
  isHex,
  isTempo,
  parseRaw,
  sameAddress,
  selectorOf,
  zeroAddress,
} from '@purser/protocol'
import { z } from 'zod'
import { type Clock, instantOf } from '../../platform/clock.ts'
import { fail } from '../errors.ts'
import { partnerAddress as address, type PartnerApi, type PartnerSettings, requestPartner } from '../partner-request.ts'
import { readKeyedApi } from '../settings.ts'
import { address as account, bytes32, decodeCall, tuple, uint } from './abi.ts'
import { type CallMeaning, changesOf, type GuardRules, leastOf, refusedFor, whyNotSigned } from './guard.ts'
import type {
  PlannedCall,
  Quoted,
  RouteRequest,
  RouteStatus,
  RoutingAdapter,
  RoutingDeps,
  RoutingPartner,
} from './port.ts'
import { Order, orderIdOf, readOrder } from './relay-order.ts'

const timeoutMsDefault = 15_000
const responseBytesMax = 1_048_576
const quoteMs = 60_000

/** Relay's depository, the only Relay contract that receives deposits, with one address on all chains (docs.relay.link). */
export const relayDepository: Address = '0x4cD00E387622C35bDDB9b4c962C136462338BC31'
const depositErc20 = selectorOf('depositErc20(address,address,uint256,bytes32)')
const depositNative = selectorOf('depositNative(address,bytes32)')
/** RelayDepository (relayprotocol/relay-depository, packages/ethereum-vm). */
const erc20Arguments = tuple({ depositor: account, token: account, rawAmount: uint(256), id: bytes32 })
const nativeArguments = tuple({ depositor: account, id: bytes32 })

const raw = z.string().transform((text, ctx) => {
  const value = parseRaw(text)
  if (typeof value === 'bigint') return value
  ctx.addIssue({ code: 'custom', message: 'must be a whole number' })
  return z.NEVER
})
const data = z.string().max(131_072).refine(isHex)
const Currency = z.object({ chainId: z.int(), address })

/** `POST /quote/v2`. Fields that are not parsed here are not used. */
const Quote = z.object({
  steps: z
    .array(
      z.object({
        id: z.string().max(64),
        kind: z.string().max(64),
        requestId: z.string().max(128).optional(),
        items: z.array(z.object({ status: z.string().max(64), data: z.unknown() })).max(8),
      }),
    )
    .max(8),
  /** The order that the deposit pays for. */
  protocol: z.object({ v2: z.object({ orderData: z.unknown().optional() }) }).optional(),
  fees: z.object({ relayer: z.object({ amount: raw, currency: z.object({ symbol: z.string().max(32) }) }).optional() }),
  details: z.object({
    recipient: address,
    timeEstimate: z.number().min(0).max(1_000_000).optional(),
    currencyIn: z.object({ currency: Currency, amount: raw }),
    currencyOut: z.object({ currency: Currency, amount: raw, minimumAmount: raw }),
  }),
})
type Quote = z.output<typeof Quote>

const Transaction = z.object({ chainId: z.int(), to: address, data, value: raw.optional() })

/** `GET /intents/status/v3`. */
const Status = z.object({
  status: z.string().max(64),
  details: z.string().max(1_024).nullish(),
  txHashes: z.array(z.string().max(128)).max(32).nullish(),
})

const name = 'relay'

/** Relay: a solver pays out on the destination chain as soon as it sees the deposit. It is the partner for Tempo. */
export function createRelay({ outbound, clock }: RoutingDeps, settings: PartnerSettings): RoutingPartner {
  const limits = { timeoutMs: settings.timeoutMs ?? timeoutMsDefault, bytesMax: responseBytesMax }
  const headers = { 'x-api-key': settings.apiKey }
  const api: PartnerApi = { outbound, name, baseUrl: settings.baseUrl, headers, limits }
  return {
    name,
    contracts: [relayDepository],
    async quote(request) {
      const response = await requestPartner(api, { method: 'POST', path: '/quote/v2', body: bodyOf(request) }, Quote)
      if (response.ok) return quotedFrom(response.value, request, clock)
      return declinedFrom(response.declined.json)
    },
    expects: (request, call) => changesOf(call, request, rulesOf(request)),
    async status({ reference }) {
      const path = `/intents/status/v3?requestId=${encodeURIComponent(reference)}`
      const response = await requestPartner(api, { method: 'GET', path }, Status)
      if (!response.ok)
        throw fail(
          'partner-unavailable',
          {},
          new Error(`relay refused to return a status: ${response.declined.status}`),
        )
      return relayStatusOf(response.value)
    },
  }
}

/** Relay serves routes from or to Tempo. */
export const relay: RoutingAdapter<{ readonly relay?: PartnerSettings | undefined }> = {
  name,
  environment: 'live',
  readAccount: (reader) => ({ relay: readKeyedApi(reader, { name: 'RELAY', baseUrl: 'https://api.relay.link' }) }),
  whyServing: ({ from, to }) => (isTempo(from.network) || isTempo(to.network) ? 'Relay serves Tempo' : undefined),
  open: (deps, account) => account.relay && createRelay(deps, account.relay),
}

function bodyOf({ from, to, rawAmount, fromAddress, toAddress, slippageBps }: RouteRequest) {
  return {
    user: fromAddress,
    recipient: toAddress,
    refundTo: fromAddress,
    originChainId: from.network.chainId,
    destinationChainId: to.network.chainId,
    originCurrency: from.token.address,
    destinationCurrency: to.token.address,
    amount: rawAmount.toString(),
    tradeType: 'EXACT_INPUT',
    slippageTolerance: String(slippageBps),
    usePermit: false,
    explicitDeposit: true,
    includeProtocolData: true,
  }
}

function feesOf({ relayer }: Quote['fees']) {
  return relayer === undefined ? [] : [{ name: 'Relay', symbol: relayer.currency.symbol, rawAmount: relayer.amount }]
}

function quotedFrom({ steps, details, fees, protocol }: Quote, request: RouteRequest, clock: Clock): Quoted {
  const { currencyOut } = details
  const reference = steps.find(({ requestId }) => requestId !== undefined)?.requestId
  const fault = faultOf(details, request)
  if (fault !== undefined) return { ok: false, reason: 'unsafe', words: fault }
  const calls = callsOf(steps)
  if (calls === undefined || reference === undefined)
    return {
      ok: false,
      reason: 'unsafe',
      words: 'The partner requests signatures on something other than transactions.',
    }
  const rawOutMin = leastOf(currencyOut.amount, request.slippageBps)
  if (currencyOut.minimumAmount < rawOutMin) return { ok: false, reason: 'unsafe', words: 'minimum-too-low' }
  const order = Order.safeParse(protocol?.v2.orderData).data
  const rules = rulesOf(request, order ?? null)
  const unsafe = whyNotSigned(calls, request, { ...rules, rawOutMin: currencyOut.minimumAmount })
  if (unsafe !== undefined) return refusedFor(unsafe, calls)
  return {
    ok: true,
    quote: {
      partner: name,
      reference,
      rawOut: currencyOut.amount,
      rawOutMin: currencyOut.minimumAmount,
      fees: feesOf(fees),
      etaSeconds: Math.ceil(details.timeEstimate ?? 60),
      expiresAt: instantOf(clock.now().getTime() + quoteMs),
      calls,
      ...(order && { orderId: orderIdOf(order) }),
    },
  }
}

/** Checks the quote's own fields, since the call data does not contain the recipient. */
function faultOf({ recipient, currencyIn, currencyOut }: Quote['details'], request: RouteRequest): string | undefined {
  const { from, to } = request
  if (!sameAddress(recipient, request.toAddress)) return 'recipient-differs'
  if (currencyIn.amount !== request.rawAmount || !sameAddress(currencyIn.currency.address, from.token.address))
    return 'amount-differs'
  const isRequested =
    currencyOut.currency.chainId === to.network.chainId && sameAddress(currencyOut.currency.address, to.token.address)
  return isRequested ? undefined : 'destination-differs'
}

/** The calls in order; undefined when a step is not a transaction. A step without items is already done. */
function callsOf(steps: Quote['steps']): readonly PlannedCall[] | undefined {
  if (steps.some(({ kind, id }) => kind !== 'transaction' || !['approve', 'deposit', 'swap', 'send'].includes(id)))
    return undefined
  const items = steps.flatMap((step) => step.items.filter(({ status }) => status !== 'complete'))
  const parsed = items.map((item) => Transaction.safeParse(item.data))
  if (parsed.some(({ success }) => !success)) return undefined
  return parsed.flatMap(({ data: one }) =>
    one === undefined ? [] : [{ chainId: one.chainId, to: one.to, value: one.value ?? 0n, data: one.data }],
  )
}

/**
 * A deposit refers to an order by its hash. With `order`, the effect is read from it. Without it, for a second check of a deposit whose order was
 * already verified, the effect is taken from the request. `null` means that the order is missing or malformed.
 */
function rulesOf(request: RouteRequest, order?: Order | null): GuardRules {
  return { targets: [relayDepository], read: (bytes) => readDeposit(bytes, request, order) }
}

function readDeposit(bytes: Hex, request: RouteRequest, order: Order | null | undefined): CallMeaning | undefined {
  const deposit = depositIn(bytes, request)
  if (deposit === undefined || !sameAddress(deposit.depositor, request.fromAddress)) return undefined
  const { token, rawAmount, id } = deposit
  const paid = order === undefined ? ordered(request) : order === null ? undefined : readOrder(order, request)
  if (paid === undefined || (order && orderIdOf(order) !== id)) return undefined
  if (!sameAddress(paid.spends.token, token) || paid.spends.rawAmount !== rawAmount) return undefined
  return { ...paid, changes: [{ token, account: relayDepository, least: rawAmount, most: rawAmount }] }
}

/** A deposit of native coin contains no amount; the guard compares the call value. */
function depositIn(bytes: Hex, { from, rawAmount }: RouteRequest) {
  const native = decodeCall(bytes, depositNative, nativeArguments)
  const isCoin = sameAddress(from.token.address, zeroAddress)
  if (native !== undefined) return isCoin ? { ...native, token: zeroAddress, rawAmount } : undefined
  return decodeCall(bytes, depositErc20, erc20Arguments)
}

function ordered({ from, to, rawAmount, toAddress, fromAddress }: RouteRequest): Omit<CallMeaning, 'changes'> {
  return {
    spends: { token: from.token.address, rawAmount },
    arrives: { chainId: to.network.chainId, token: to.token.address, recipient: toAddress, rawMin: 0n },
    refundTo: fromAddress,
  }
}

const ErrorBody = z.object({ errorCode: z.string().max(128) })

function declinedFrom(json: unknown): Quoted {
  const parsed = ErrorBody.safeParse(json)
  const code = parsed.success ? parsed.data.errorCode : 'refused'
  if (code === 'AMOUNT_TOO_LOW') return { ok: false, reason: 'amount-too-low', words: 'Relay has a higher minimum.' }
  if (code === 'INSUFFICIENT_LIQUIDITY')
    return { ok: false, reason: 'amount-too-high', words: 'Relay does not have enough liquidity.' }
  return { ok: false, reason: 'no-route', words: 'Relay has no route.' }
}

/** The pending statuses (docs.relay.link, "Get Status", v3). */
const waiting = ['waiting', 'depositing', 'pending', 'submitted', 'delayed']

/**
 * Maps a Relay status to ours. `failure` means that the payout failed, without saying where the money is; the route is followed until the refund is
 * observed, and never sent again. Some Relay tools write `refunded` for `refund`.
 */
function relayStatusOf(response: {
  readonly status: string
  readonly txHashes?: readonly string[] | null | undefined
}): RouteStatus {
  const { status } = response
  const hash = hashIn(response.txHashes ?? [])
  if (status === 'success')
    return { state: 'completed', partnerStatus: status, ...(hash === undefined ? {} : { destinationTxHash: hash }) }
  const reason = 'The partner could not pay out on the destination chain.'
  if (status === 'refund' || status === 'refunded')
    return {
      state: 'failed',
      partnerStatus: status,
      reason,
      refund: 'done',
      ...(hash === undefined ? {} : { refundTxHash: hash }),
    }
  if (status === 'failure') return { state: 'failed', partnerStatus: status, reason, refund: 'pending' }
  return { state: 'pending', partnerStatus: status, ...(waiting.includes(status) ? {} : { isUnknown: true }) }
}

function hashIn(hashes: readonly string[]): Hex | undefined {
  const last = hashes.at(-1)
  return last !== undefined && isHex(last) && last.length === 66 ? last : undefined
}
