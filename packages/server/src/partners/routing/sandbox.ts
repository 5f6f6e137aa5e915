import { type Address, bytesToHex, encodeBalanceOf, type Hex, isHex, sameAddress, zeroAddress } from '@purser/protocol'
import { type Clock, instantOf } from '../../platform/clock.ts'
import type { Random } from '../../platform/random.ts'
import { type CallFacts, encodeApprove, type GuardRules, leastOf, whyNotSigned } from './guard.ts'
import type {
  ChainReader,
  PlannedCall,
  Quoted,
  RouteFee,
  RouteRequest,
  RouteStatus,
  RoutingPartner,
  SentRoute,
} from './port.ts'
import { argumentsOf, encodeCall, selectorIn, selectorOf, wordsOf } from './words.ts'

/** Where the sandbox's contracts are, on every local chain. */
export interface SandboxContracts {
  readonly pool: Address
  readonly bridge: Address
}

interface SandboxDeps {
  readonly reader: ChainReader
  readonly clock: Clock
  readonly random: Random
}

const quoteMs = 60_000
/** What the bridge pays out of a thousand that came in; its relayer takes the same. */
const bridgeKeeps = { paid: 999n, of: 1_000n } as const

const selectors = {
  quote: selectorOf('quote(address,address,uint256)'),
  swap: selectorOf('swap(bytes32,address,uint256,address,uint256,address)'),
  paid: selectorOf('paid(bytes32)'),
  deposit: selectorOf('deposit(bytes32,address,uint256,uint256,address,address,uint256)'),
  deposits: selectorOf('deposits(bytes32)'),
  fills: selectorOf('fills(bytes32)'),
}

/**
 * The partner of the test environment, on local chains: a market that swaps and a bridge that a relayer pays out, with real test tokens.
 * Its quotes are read off the chain, and its calls pass the same guard as a real partner's.
 */
export function createSandboxRouting(deps: SandboxDeps, contracts: SandboxContracts): RoutingPartner {
  return {
    name: 'sandbox',
    quote: (request) =>
      request.from.network.chainId === request.to.network.chainId
        ? quoteSwap(deps, contracts, request)
        : quoteBridge(deps, contracts, request),
    status(route) {
      const [kind, id] = route.reference.split(':')
      if (id === undefined || !isHex(id)) throw new Error('a route of the sandbox without its number')
      return kind === 'swap' ? swapStatus(deps, contracts, route, id) : bridgeStatus(deps, contracts, route, id)
    },
  }
}

async function quoteSwap(deps: SandboxDeps, { pool }: SandboxContracts, request: RouteRequest): Promise<Quoted> {
  const { from, to, rawAmount, toAddress } = request
  const asked = encodeCall(selectors.quote, [from.token.address, to.token.address, rawAmount])
  const rawOut = wordsOf(await deps.reader.call(from.network, pool, asked)).uint(0) ?? 0n
  if (rawOut === 0n) return { ok: false, reason: 'no-route', words: 'The sandbox has no market of these tokens.' }
  const id = bytesToHex(deps.random.bytes(32))
  const rawOutMin = leastOf(rawOut, request.slippageBps)
  const args = [id, from.token.address, rawAmount, to.token.address, rawOutMin, toAddress]
  const offer = { rawOut, rawOutMin, target: pool, reference: `swap:${id}`, fees: [] }
  return quotedWith(deps, request, { ...offer, data: encodeCall(selectors.swap, args) })
}

async function quoteBridge(deps: SandboxDeps, { bridge }: SandboxContracts, request: RouteRequest): Promise<Quoted> {
  const { from, to, rawAmount, toAddress } = request
  if (isCoin(from.token.address) !== isCoin(to.token.address))
    return { ok: false, reason: 'no-route', words: 'The sandbox bridges tokens to tokens and coin to coin.' }
  const scaled = (rawAmount * 10n ** BigInt(to.token.decimals)) / 10n ** BigInt(from.token.decimals)
  const rawOut = (scaled * bridgeKeeps.paid) / bridgeKeeps.of
  if (rawOut === 0n) return { ok: false, reason: 'amount-too-low', words: 'The fee would take the whole amount.' }
  if (!isCoin(to.token.address)) {
    const store = wordsOf(await deps.reader.call(to.network, to.token.address, encodeBalanceOf(bridge))).uint(0) ?? 0n
    if (store < rawOut)
      return { ok: false, reason: 'amount-too-high', words: 'The sandbox has not so much on the other side.' }
  }
  const id = bytesToHex(deps.random.bytes(32))
  const rawOutMin = leastOf(rawOut, request.slippageBps)
  const chainId = BigInt(to.network.chainId)
  const args = [id, from.token.address, rawAmount, chainId, to.token.address, toAddress, rawOutMin]
  const fees = [{ name: 'Sandbox', symbol: to.token.symbol, rawAmount: scaled - rawOut }]
  const offer = { rawOut, rawOutMin, target: bridge, reference: `bridge:${id}`, fees }
  return quotedWith(deps, request, { ...offer, data: encodeCall(selectors.deposit, args) })
}

interface Offer {
  readonly rawOut: bigint
  readonly rawOutMin: bigint
  readonly target: Address
  readonly reference: string
  readonly fees: readonly RouteFee[]
  readonly data: Hex
}

function quotedWith({ clock }: SandboxDeps, request: RouteRequest, offer: Offer): Quoted {
  const { rawOut, rawOutMin, reference, fees } = offer
  const calls = callsOf(request, offer)
  const unsafe = whyNotSigned(calls, rulesOf(request, offer))
  if (unsafe !== undefined) return { ok: false, reason: 'unsafe', words: unsafe }
  const expiresAt = instantOf(clock.now().getTime() + quoteMs)
  return {
    ok: true,
    quote: { partner: 'sandbox', reference, rawOut, rawOutMin, fees, etaSeconds: 2, expiresAt, calls },
  }
}

function callsOf({ from, rawAmount }: RouteRequest, { target, data }: Offer): readonly PlannedCall[] {
  const { chainId } = from.network
  if (isCoin(from.token.address)) return [{ chainId, to: target, value: rawAmount, data }]
  return [
    { chainId, to: from.token.address, value: 0n, data: encodeApprove(target, rawAmount) },
    { chainId, to: target, value: 0n, data },
  ]
}

function rulesOf(request: RouteRequest, { target, rawOutMin }: Offer): GuardRules {
  return {
    chainId: request.from.network.chainId,
    token: request.from.token.address,
    rawAmount: request.rawAmount,
    recipient: request.toAddress,
    destinationChainId: request.to.network.chainId,
    rawOutMin,
    targets: [target],
    spenders: [target],
    read: (data) => readCall(data, request.from.network.chainId),
    mustShow: ['spends', 'recipient', 'rawOutMin', 'destinationChainId'],
  }
}

function readCall(data: Hex, chainId: number): CallFacts | undefined {
  const args = argumentsOf(data)
  const isSwap = selectorIn(data) === selectors.swap
  if (!isSwap && selectorIn(data) !== selectors.deposit) return undefined
  const [token, rawAmount] = [args.address(1), args.uint(2)]
  const [recipient, rawOutMin] = isSwap ? [args.address(5), args.uint(4)] : [args.address(5), args.uint(6)]
  if (token === undefined || rawAmount === undefined || recipient === undefined || rawOutMin === undefined)
    return undefined
  const destinationChainId = isSwap ? chainId : Number(args.uint(3))
  return { spends: { token, rawAmount }, recipient, rawOutMin, destinationChainId }
}

/** A swap is all in one transaction: it has paid, or it is in no block yet, or its receipt says that it reverted. */
async function swapStatus(
  { reader }: SandboxDeps,
  { pool }: SandboxContracts,
  { request, txHash }: SentRoute,
  id: Hex,
): Promise<RouteStatus> {
  const { network, token } = request.to
  const rawAmount = wordsOf(await reader.call(network, pool, encodeCall(selectors.paid, [id]))).uint(0) ?? 0n
  if (rawAmount === 0n) return { state: 'pending', partnerStatus: 'not-seen' }
  const received = { chainId: network.chainId, token: token.address, rawAmount, isOther: false }
  return { state: 'completed', partnerStatus: 'swapped', received, destinationTxHash: txHash }
}

const failed = { state: 'failed', reason: 'The sandbox was told not to deliver.' } as const

async function bridgeStatus(
  { reader }: SandboxDeps,
  { bridge }: SandboxContracts,
  { request }: SentRoute,
  id: Hex,
): Promise<RouteStatus> {
  const { from, to } = request
  const deposit = wordsOf(await reader.call(from.network, bridge, encodeCall(selectors.deposits, [id])))
  const state = deposit.uint(0)
  if (state === undefined || state === 0n) return { state: 'pending', partnerStatus: 'not-seen' }
  if (state === 2n) return { ...failed, partnerStatus: 'refunded', refund: 'done' }
  if (state === 3n) return { ...failed, partnerStatus: 'failed', refund: 'pending' }
  const fill = wordsOf(await reader.call(to.network, bridge, encodeCall(selectors.fills, [id])))
  const [token, rawAmount] = [fill.address(0), fill.uint(2)]
  if (token === undefined || rawAmount === undefined || rawAmount === 0n)
    return { state: 'pending', partnerStatus: 'deposited' }
  const isOther = !sameAddress(token, to.token.address)
  const received = { chainId: to.network.chainId, token, rawAmount, isOther }
  return { state: 'completed', partnerStatus: 'filled', received }
}

function isCoin(address: Address): boolean {
  return sameAddress(address, zeroAddress)
}
