import {
  encodeTransfer,
  type Hex,
  isHex,
  multicall3Address,
  type Network,
  networks,
  sameAddress,
  tokenBySymbol,
} from '@purser/protocol'
import { z } from 'zod'
import { instantOf } from '../../platform/clock.ts'
import { encodeApprove } from '../../platform/contract-calls.ts'
import type { Log } from '../../platform/log.ts'
import { fail } from '../errors.ts'
import { type PartnerApi, requestPartner } from '../partner-request.ts'
import { readUrl } from '../settings.ts'
import {
  type BurnMessage,
  cctpContracts,
  encodeBlockNumber,
  encodeDepositForBurn,
  encodeReceiveMessage,
  encodeUsedNonces,
  isSentMessage,
  readBurnMessage,
  readDepositForBurn,
  readMessagesSent,
} from './cctp-calls.ts'
import { changesOf, type GuardRules, leastOf, refusedFor, whyNotSigned } from './guard.ts'
import type {
  ChainReader,
  DeliveryReader,
  Quoted,
  RouteRequest,
  RouteStatus,
  RoutingAdapter,
  RoutingDeps,
  RoutingPartner,
  SentRoute,
} from './port.ts'
import { wordsOf } from './words.ts'

export interface CctpDeps extends RoutingDeps {
  readonly log: Log
  readonly reader: ChainReader
  readonly deliveries: DeliveryReader
}

/** Circle's attestation service: `https://iris-api.circle.com`, `https://iris-api-sandbox.circle.com` for test networks. */
export interface CctpSettings {
  readonly baseUrl: string
  readonly timeoutMs?: number
}

const timeoutMsDefault = 10_000
const responseBytesMax = 262_144
const quoteMs = 300_000
/** `receiveMessage` uses 150,000 to 200,000. */
const claimGas = 300_000n
const hexText = z.string().max(65_536).refine(isHex)

/** `GET /v2/burn/USDC/fees/{source}/{destination}`; the fee is in hundredths of a percent, which may have a fraction. */
const Fees = z.array(z.object({ finalityThreshold: z.int(), minimumFee: z.number().min(0).max(10_000) }))

/** `GET /v2/messages/{source}?transactionHash=`. */
const Messages = z.object({
  messages: z
    .array(
      z.object({
        message: z.string().max(65_536).nullish(),
        attestation: z.string().max(65_536).nullish(),
        eventNonce: z.string().max(128).nullish(),
        cctpVersion: z.int().nullish(),
        status: z.string().max(64),
        delayReason: z.string().max(128).nullish(),
      }),
    )
    .max(64),
})
type Message = z.output<typeof Messages>['messages'][number]

const name = 'cctp'

/** Circle's Cross-Chain Transfer Protocol, version 2: USDC is burned on one chain and minted on the other, without a pool. */
export function createCctp(deps: CctpDeps, settings: CctpSettings): RoutingPartner {
  const limits = { timeoutMs: settings.timeoutMs ?? timeoutMsDefault, bytesMax: responseBytesMax }
  const api: PartnerApi = { outbound: deps.outbound, name, baseUrl: settings.baseUrl, headers: {}, limits }
  return {
    name,
    contracts: [true, false].flatMap((isTestnet) => Object.values(cctpContracts({ isTestnet }))),
    quote: (request) => quote(api, deps, request),
    expects: (request, call) => changesOf(call, request, cctpRules(request)),
    status: (route) => statusOf(api, deps, route),
  }
}

/** Circle's service for main networks. It needs no API key. */
const baseUrl = 'https://iris-api.circle.com'

/** CCTP serves USDC between the chains of Circle. */
export const cctp: RoutingAdapter<{ readonly cctp?: CctpSettings }> = {
  name,
  environment: 'live',
  readAccount: (reader) => ({ cctp: { baseUrl: readUrl(reader, { name: 'CCTP_API_URL', baseUrl }) } }),
  whyServing({ from, to }) {
    const isUsdc = from.token.symbol === 'USDC' && to.token.symbol === 'USDC'
    const areChains = from.network.cctp !== null && to.network.cctp !== null
    return isUsdc && areChains ? 'Circle burns USDC on one chain and mints it on the other' : undefined
  },
  open: (deps, account) => createCctp(deps, account.cctp ?? { baseUrl }),
}

async function quote(api: PartnerApi, { clock, reader, deliveries }: CctpDeps, request: RouteRequest): Promise<Quoted> {
  const [source, destination] = [request.from.network.cctp, request.to.network.cctp]
  const isUsdc = request.from.token.symbol === 'USDC' && request.to.token.symbol === 'USDC'
  if (source === null || destination === null || source.domain === destination.domain || !isUsdc) return notServed
  // The burned amount must be claimed on the destination chain, which needs a node there.
  await reader.blockNumber(request.to.network)
  const refusal = await refusalOfRecipient(deliveries, request)
  if (refusal !== undefined) return { ok: false, reason: 'recipient-refused', words: refusal }
  const fee = await chooseFee(api, source, destination)
  if (fee === undefined) return { ok: false, reason: 'no-route', words: 'Circle has no fee for these chains.' }
  const rawFee = feeOf(request.rawAmount, fee.minimumFee)
  const rawFeeMax = feeMaxOf(request, rawFee)
  if (rawFeeMax >= request.rawAmount)
    return { ok: false, reason: 'amount-too-low', words: 'The fee would take the whole amount.' }
  const isFast = fee.finalityThreshold === fastThreshold
  const planned = callsOf(request, rawFeeMax, isFast ? fastThreshold : finalThreshold)
  const rawOutMin = request.rawAmount - rawFeeMax
  const unsafe = whyNotSigned(planned, request, { ...cctpRules(request), rawOutMin })
  if (unsafe !== undefined) return refusedFor(unsafe, planned)
  return {
    ok: true,
    quote: {
      partner: name,
      reference: String(source.domain),
      rawOut: request.rawAmount - rawFee,
      rawOutMin,
      fees: [{ name: 'Circle', symbol: 'USDC', rawAmount: rawFee }],
      etaSeconds: isFast ? source.fastSeconds : source.standardSeconds,
      expiresAt: instantOf(clock.now().getTime() + quoteMs),
      calls: planned,
      claimGas,
    },
  }
}

/**
 * The reason with which the destination's USDC refuses any transfer to the recipient, as a majority of the nodes reports: it is blocked, or the token
 * is paused. It would refuse the mint too, and what is burned does not come back. Undefined if it refuses nothing.
 */
function refusalOfRecipient(
  deliveries: DeliveryReader,
  { to: { network, token }, fromAddress, toAddress }: RouteRequest,
): Promise<string | undefined> {
  return deliveries.refusalOf(network, { from: fromAddress, to: token.address, data: encodeTransfer(toAddress, 0n) })
}

const notServed: Quoted = {
  ok: false,
  reason: 'no-route',
  words: 'CCTP moves only USDC, and only between the chains that it supports.',
}

/** The finality that a burn needs before Circle attests it: none, so that it is attested at once, or that of its block. */
const [fastThreshold, finalThreshold] = [1_000, 2_000] as const

type CctpChain = NonNullable<Network['cctp']>

/** The fee of a fast transfer if the source chain has them, otherwise that of a standard one. */
async function chooseFee(api: PartnerApi, source: CctpChain, destination: CctpChain) {
  const path = `/v2/burn/USDC/fees/${source.domain}/${destination.domain}`
  const response = await requestPartner(api, { method: 'GET', path }, Fees)
  const fees = response.ok ? response.value : []
  const fast = source.fast ? fees.find(({ finalityThreshold }) => finalityThreshold === fastThreshold) : undefined
  return fast ?? fees.find(({ finalityThreshold }) => finalityThreshold === finalThreshold)
}

const feeParts = 10_000

/** Rounded up, because a fee that is one unit short makes the transfer slow. */
function feeOf(rawAmount: bigint, bps: number): bigint {
  const parts = BigInt(Math.ceil(bps * feeParts))
  const whole = 10_000n * BigInt(feeParts)
  return (rawAmount * parts + whole - 1n) / whole
}

/** Maximum fee: up to a fifth above the quoted fee, within the slippage. A fee that rises above it before the burn makes the transfer slow. */
function feeMaxOf({ rawAmount, slippageBps }: RouteRequest, rawFee: bigint): bigint {
  const rawOut = rawAmount - rawFee
  if (rawOut <= 0n) return rawFee
  const spare = rawOut - leastOf(rawOut, slippageBps)
  const wanted = (rawFee + 4n) / 5n
  return rawFee + (wanted < spare ? wanted : spare)
}

function callsOf({ from, to, rawAmount, toAddress }: RouteRequest, rawFeeMax: bigint, threshold: 1_000 | 2_000) {
  const { tokenMessenger } = cctpContracts(from.network)
  const { chainId } = from.network
  const burn = encodeDepositForBurn({
    rawAmount,
    destinationDomain: to.network.cctp?.domain ?? -1,
    recipient: toAddress,
    burnToken: from.token.address,
    rawFeeMax,
    finalityThreshold: threshold,
  })
  return [
    { chainId, to: from.token.address, value: 0n, data: encodeApprove(tokenMessenger, rawAmount) },
    { chainId, to: tokenMessenger, value: 0n, data: burn },
  ]
}

/** Guard rules for our own calls, which are checked like a partner's. */
function cctpRules({ from }: RouteRequest): GuardRules {
  const endOf = (domain: number) => {
    const network = networks.find((one) => one.isTestnet === from.network.isTestnet && one.cctp?.domain === domain)
    const token = network && tokenBySymbol(network, 'USDC')
    return network === undefined || token === undefined ? undefined : { chainId: network.chainId, token: token.address }
  }
  return { targets: [cctpContracts(from.network).tokenMessenger], read: (data) => readDepositForBurn(data, endOf) }
}

async function statusOf(api: PartnerApi, deps: CctpDeps, route: SentRoute): Promise<RouteStatus> {
  const path = `/v2/messages/${route.request.from.network.cctp?.domain}?transactionHash=${route.txHash}`
  const response = await requestPartner(api, { method: 'GET', path }, Messages)
  if (!response.ok) {
    if (response.declined.status === 404) return { state: 'pending', partnerStatus: 'not-seen' }
    throw fail('partner-unavailable', {}, new Error(`cctp refused to return a message: ${response.declined.status}`))
  }
  const { network } = route.request.from
  const logs = await deps.reader.logs(network, route.txHash)
  if (logs === undefined) return { state: 'pending', partnerStatus: 'burn-not-seen' }
  // Circle returns a transaction's messages in the order of its logs.
  const all = readMessagesSent(logs, cctpContracts(network).messageTransmitter)
  const index = all.findIndex((one) => isOurs(readBurnMessage(one), route.request))
  const [sent, message] = [all[index], response.value.messages[index]]
  if (sent === undefined) throw new Error('the burn sent no message')
  if (message === undefined) return { state: 'pending', partnerStatus: 'not-seen' }
  if (message.status === 'pending_confirmations')
    return { state: 'pending', partnerStatus: message.delayReason ?? message.status }
  if (message.status !== 'complete') return { state: 'pending', partnerStatus: message.status, isUnknown: true }
  return attested(api, deps, route, { ...message, sent })
}

async function attested(
  api: PartnerApi,
  { reader, deliveries, log }: CctpDeps,
  route: SentRoute,
  reported: Message & { readonly sent: Hex },
): Promise<RouteStatus> {
  const { request } = route
  const signed = readSigned(reported)
  if (signed === undefined) return { state: 'pending', partnerStatus: 'attestation-not-there' }
  const { burn, data } = signed
  const { network } = request.to
  const { messageTransmitter } = cctpContracts(network)
  const usedNonces = encodeUsedNonces(burn.nonce)
  const atDepth = await deliveries.numberAtDepth(network, messageTransmitter, usedNonces)
  // One node could hide a delivery, and each claim of it would revert at the master's expense.
  if (atDepth === undefined) return { state: 'pending', partnerStatus: 'nodes-disagree' }
  if (atDepth !== 0n) {
    const repeated = { from: request.fromAddress, to: messageTransmitter, data }
    if ((await deliveries.refusalOf(network, repeated)) !== usedRefusal)
      throw fail('partner-unavailable', {}, new Error('cctp reported a delivery of a message that it did not attest'))
    return deliveredBy(burn, request, reported.status)
  }
  // The delivery may still be reorganized away, and then it must be repeated.
  if (isUsed(await reader.call(network, messageTransmitter, usedNonces)))
    return { state: 'pending', partnerStatus: 'delivered-not-final' }
  // The contract accepts it only in earlier blocks, and a claim is mined in the next block at the earliest.
  if (burn.expirationBlock !== 0n && (await isExpiring(reader, network, burn.expirationBlock))) {
    await reattest(api, burn)
    log.warn({ partner: name, txHash: route.txHash }, 'an attestation expired and was requested again')
    return { state: 'pending', partnerStatus: 'attestation-expired' }
  }
  const call = { chainId: network.chainId, to: messageTransmitter, value: 0n, data }
  return { state: 'claimable', partnerStatus: reported.status, message: burn.nonce, call }
}

/** The burn of an attested message and the data of the call that claims it; undefined before it is attested. Throws if it is not the message that was sent. */
function readSigned(reported: Message & { readonly sent: Hex }) {
  const message = hexText.safeParse(reported.message)
  const attestation = hexText.safeParse(reported.attestation)
  if (!message.success || !attestation.success) return undefined
  const burn = readBurnMessage(message.data)
  if (burn === undefined || !isAttested(burn, reported) || !isSentMessage(message.data, reported.sent))
    throw fail('partner-unavailable', {}, new Error('cctp attested a different message than was sent'))
  return { burn, data: encodeReceiveMessage({ message: message.data, attestation: attestation.data }) }
}

function deliveredBy(burn: BurnMessage, { to }: RouteRequest, partnerStatus: string): RouteStatus {
  const rawAmount = burn.rawAmount - burn.rawFee
  const received = { chainId: to.network.chainId, token: to.token.address, rawAmount, isOther: false }
  return { state: 'completed', partnerStatus, message: burn.nonce, received }
}

/**
 * The reason with which MessageTransmitterV2 refuses a message that was delivered. It checks the attestation first, so the attesters signed this
 * message with this nonce: the used nonce is not that of another burn. Source: circlefin/evm-cctp-contracts, MessageTransmitterV2
 * `_validateReceivedMessage`.
 */
const usedRefusal = 'Nonce already used'

/**
 * Whether the next block is the one of the expiration. Circle's contract compares it with the number of the block as contracts on the chain see it (`block.number`). On Arbitrum
 * it is about Ethereum's, twenty times lower than the chain's own. Source: Arbitrum's documentation, "Block numbers and time".
 */
async function isExpiring(reader: ChainReader, network: Network, expirationBlock: bigint): Promise<boolean> {
  const isAt = (response: Hex): boolean | undefined => {
    const number = wordsOf(response).uint(0)
    return number === undefined ? undefined : number + 1n >= expirationBlock
  }
  const meaningOf = (response: Hex): string => String(isAt(response))
  const isReached = isAt(await reader.call(network, multicall3Address, encodeBlockNumber(), meaningOf))
  if (isReached === undefined) throw new Error(`no contract of ${network.name} returned its block number`)
  return isReached
}

function isUsed(response: Hex): boolean {
  return (wordsOf(response).uint(0) ?? 0n) !== 0n
}

/**
 * Whether it has the nonce that Circle reports and a fee below the amount. A message has nonce 0 before it is attested, and Circle's contracts
 * report nonce 0 as delivered.
 */
function isAttested({ nonce, rawFee, rawAmount }: BurnMessage, { eventNonce }: Message): boolean {
  const isNamed = typeof eventNonce !== 'string' || eventNonce.toLowerCase() === nonce
  return BigInt(nonce) !== 0n && isNamed && rawFee < rawAmount
}

/** Whether the message is the burn of this request. */
function isOurs(burn: BurnMessage | undefined, { from, to, rawAmount, fromAddress, toAddress }: RouteRequest): boolean {
  return (
    burn !== undefined &&
    sameAddress(burn.sender, fromAddress) &&
    burn.sourceDomain === from.network.cctp?.domain &&
    burn.destinationDomain === to.network.cctp?.domain &&
    burn.rawAmount === rawAmount &&
    sameAddress(burn.recipient, toAddress)
  )
}

/** Requests a new attestation for an expired one. Idempotent at Circle. */
async function reattest(api: PartnerApi, { nonce }: BurnMessage): Promise<void> {
  await requestPartner(api, { method: 'POST', path: `/v2/reattest/${nonce}` }, z.unknown())
}
