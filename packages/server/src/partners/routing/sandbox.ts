import {
  type Address,
  bytesToHex,
  encodeBalanceOf,
  type Hex,
  isHex,
  keccak256,
  parseAddress,
  sameAddress,
  selectorOf,
  utf8,
  zeroAddress,
} from '@purser/protocol'
import { instantOf } from '../../platform/clock.ts'
import { encodeApprove, encodeWords } from '../../platform/contract-calls.ts'
import type { SettingsReader } from '../settings.ts'
import { address, bytes32, decodeCall, tuple, uint } from './abi.ts'
import { type CallMeaning, changesOf, type GuardRules, leastOf, refusedFor, whyNotSigned } from './guard.ts'
import type {
  PlannedCall,
  Quoted,
  RouteFee,
  RouteRequest,
  RouteStatus,
  RoutingAdapter,
  RoutingAdapterDeps,
  RoutingPartner,
  SentRoute,
} from './port.ts'
import { wordsOf } from './words.ts'

/** Addresses of the sandbox's contracts on every local chain. */
export interface SandboxContracts {
  readonly pool: Address
  readonly bridge: Address
}

type SandboxDeps = Pick<RoutingAdapterDeps, 'reader' | 'findEvent' | 'clock' | 'random'>

const quoteMs = 60_000
/** The share that the bridge pays out; its relayer uses the same. */
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
 * The partner of the test environment, on local chains: a market that swaps and a bridge that a relayer pays out, with real test tokens. Quotes are
 * read from the chain, and the calls pass the guard like a real partner's.
 */
export function createSandboxRouting(deps: SandboxDeps, contracts: SandboxContracts): RoutingPartner {
  return {
    name: 'sandbox',
    contracts: [contracts.pool, contracts.bridge],
    quote: (request) =>
      request.from.network.chainId === request.to.network.chainId
        ? quoteSwap(deps, contracts, request)
        : quoteBridge(deps, contracts, request),
    expects: (request, call) => changesOf(call, request, rulesOf(request, contracts)),
    status(route) {
      const [kind, id] = route.reference.split(':')
      if (id === undefined || !isHex(id)) throw new Error('a sandbox route has no id')
      return kind === 'swap' ? swapStatus(deps, contracts, route, id) : bridgeStatus(deps, contracts, route, id)
    },
  }
}

/** The sandbox serves every route of the test environment. */
export const sandbox: RoutingAdapter<{ readonly sandbox?: SandboxContracts | undefined }> = {
  name: 'sandbox',
  environment: 'test',
  readAccount: (reader) => ({ sandbox: readContracts(reader) }),
  whyServing: () => 'the test environment uses the sandbox',
  open: (deps, account) => account.sandbox && createSandboxRouting(deps, account.sandbox),
}

/** The contracts are set on every chain of a development deployment. */
function readContracts({ env, faults }: SettingsReader): SandboxContracts | undefined {
  const names = ['SANDBOX_POOL_ADDRESS', 'SANDBOX_BRIDGE_ADDRESS'] as const
  const [poolText = '', bridgeText = ''] = names.map((name) => env[name] ?? '')
  if (poolText === '' && bridgeText === '') return undefined
  const [pool, bridge] = [parseAddress(poolText), parseAddress(bridgeText)]
  for (const [name, address] of [[names[0], pool] as const, [names[1], bridge] as const])
    if (address === undefined)
      faults.push({ name, fault: 'is not an address', how: "set it to the contract's address, or leave both out" })
  return pool === undefined || bridge === undefined ? undefined : { pool, bridge }
}

const events = {
  filled: topicOf('Filled(bytes32,address,uint256,address)'),
  refunded: topicOf('Refunded(bytes32)'),
}

async function quoteSwap(deps: SandboxDeps, contracts: SandboxContracts, request: RouteRequest): Promise<Quoted> {
  const { pool } = contracts
  const { from, to, rawAmount, toAddress } = request
  const requested = encodeWords(selectors.quote, [from.token.address, to.token.address, rawAmount])
  const rawOut = wordsOf(await deps.reader.call(from.network, pool, requested)).uint(0) ?? 0n
  if (rawOut === 0n) return { ok: false, reason: 'no-route', words: 'The sandbox has no market for these tokens.' }
  const id = bytesToHex(deps.random.bytes(32))
  const rawOutMin = leastOf(rawOut, request.slippageBps)
  const args = [id, from.token.address, rawAmount, to.token.address, rawOutMin, toAddress]
  const offer = { rawOut, rawOutMin, target: pool, reference: `swap:${id}`, fees: [] }
  return quotedWith(deps, request, { ...offer, contracts, data: encodeWords(selectors.swap, args) })
}

async function quoteBridge(deps: SandboxDeps, contracts: SandboxContracts, request: RouteRequest): Promise<Quoted> {
  const { bridge } = contracts
  const { from, to, rawAmount, toAddress } = request
  if (isCoin(from.token.address) !== isCoin(to.token.address))
    return { ok: false, reason: 'no-route', words: 'The sandbox bridges tokens to tokens and coin to coin.' }
  const scaled = (rawAmount * 10n ** BigInt(to.token.decimals)) / 10n ** BigInt(from.token.decimals)
  const rawOut = (scaled * bridgeKeeps.paid) / bridgeKeeps.of
  if (rawOut === 0n) return { ok: false, reason: 'amount-too-low', words: 'The fee would take the whole amount.' }
  if (!isCoin(to.token.address)) {
    const store = wordsOf(await deps.reader.call(to.network, to.token.address, encodeBalanceOf(bridge))).uint(0) ?? 0n
    if (store < rawOut)
      return {
        ok: false,
        reason: 'amount-too-high',
        words: 'The sandbox does not have enough on the destination chain.',
      }
  }
  const id = bytesToHex(deps.random.bytes(32))
  const rawOutMin = leastOf(rawOut, request.slippageBps)
  const chainId = BigInt(to.network.chainId)
  const args = [id, from.token.address, rawAmount, chainId, to.token.address, toAddress, rawOutMin]
  const fees = [{ name: 'Sandbox', symbol: to.token.symbol, rawAmount: scaled - rawOut }]
  const offer = { rawOut, rawOutMin, target: bridge, reference: `bridge:${id}`, fees }
  return quotedWith(deps, request, { ...offer, contracts, data: encodeWords(selectors.deposit, args) })
}

interface Offer {
  readonly rawOut: bigint
  readonly rawOutMin: bigint
  readonly target: Address
  readonly reference: string
  readonly fees: readonly RouteFee[]
  readonly data: Hex
  readonly contracts: SandboxContracts
}

function quotedWith({ clock }: SandboxDeps, request: RouteRequest, offer: Offer): Quoted {
  const { rawOut, rawOutMin, reference, fees } = offer
  const calls = callsOf(request, offer)
  const unsafe = whyNotSigned(calls, request, { ...rulesOf(request, offer.contracts), rawOutMin })
  if (unsafe !== undefined) return refusedFor(unsafe, calls)
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

/** The market is the target on one chain, and the bridge between two. */
function rulesOf({ from, to }: RouteRequest, { pool, bridge }: SandboxContracts): GuardRules {
  const { chainId } = from.network
  return chainId === to.network.chainId
    ? { targets: [pool], read: (data) => readSwap(data, chainId) }
    : { targets: [bridge], read: (data) => readDeposit(data, bridge) }
}

const swapArguments = tuple({
  id: bytes32,
  token: address,
  rawAmount: uint(256),
  tokenOut: address,
  rawOutMin: uint(256),
  recipient: address,
})

function readSwap(data: Hex, chainId: number): CallMeaning | undefined {
  const swap = decodeCall(data, selectors.swap, swapArguments)
  if (swap === undefined) return undefined
  const { token, rawAmount, tokenOut, rawOutMin, recipient } = swap
  return {
    spends: { token, rawAmount },
    arrives: { chainId, token: tokenOut, recipient, rawMin: rawOutMin },
    changes: [{ token: tokenOut, account: recipient, least: rawOutMin }],
  }
}

const depositArguments = tuple({
  id: bytes32,
  token: address,
  rawAmount: uint(256),
  chainId: uint(53),
  tokenOut: address,
  recipient: address,
  rawOutMin: uint(256),
})

function readDeposit(data: Hex, bridge: Address): CallMeaning | undefined {
  const deposit = decodeCall(data, selectors.deposit, depositArguments)
  if (deposit === undefined) return undefined
  const { token, rawAmount, chainId, tokenOut, recipient, rawOutMin } = deposit
  return {
    spends: { token, rawAmount },
    arrives: { chainId: Number(chainId), token: tokenOut, recipient, rawMin: rawOutMin },
    changes: [{ token, account: bridge, least: rawAmount, most: rawAmount }],
  }
}

/** A swap is one transaction: it has paid, is not mined yet, or reverted according to its receipt. */
async function swapStatus(
  { reader }: SandboxDeps,
  { pool }: SandboxContracts,
  { request, txHash }: SentRoute,
  id: Hex,
): Promise<RouteStatus> {
  const { network, token } = request.to
  const rawAmount = wordsOf(await reader.call(network, pool, encodeWords(selectors.paid, [id]))).uint(0) ?? 0n
  if (rawAmount === 0n) return { state: 'pending', partnerStatus: 'not-seen' }
  const received = { chainId: network.chainId, token: token.address, rawAmount, isOther: false }
  return { state: 'completed', partnerStatus: 'swapped', received, destinationTxHash: txHash }
}

const failed = { state: 'failed', reason: 'The sandbox is set not to deliver.' } as const

/** Returns `pending` while the node has the state but not the log, because a final status needs the transaction hash. */
async function bridgeStatus(
  { reader, findEvent }: SandboxDeps,
  { bridge }: SandboxContracts,
  { request }: SentRoute,
  id: Hex,
): Promise<RouteStatus> {
  const { from, to } = request
  const deposit = wordsOf(await reader.call(from.network, bridge, encodeWords(selectors.deposits, [id])))
  const state = deposit.uint(0)
  if (state === undefined || state === 0n) return { state: 'pending', partnerStatus: 'not-seen' }
  if (state === 2n) {
    const refundTxHash = await findEvent(from.network, bridge, [events.refunded, id])
    if (refundTxHash === undefined) return { state: 'pending', partnerStatus: 'refunding' }
    return { ...failed, partnerStatus: 'refunded', refund: 'done', refundTxHash }
  }
  if (state === 3n) return { ...failed, partnerStatus: 'failed', refund: 'pending' }
  const fill = wordsOf(await reader.call(to.network, bridge, encodeWords(selectors.fills, [id])))
  const [token, rawAmount] = [fill.address(0), fill.uint(2)]
  const isFilled = token !== undefined && rawAmount !== undefined && rawAmount > 0n
  const destinationTxHash = isFilled ? await findEvent(to.network, bridge, [events.filled, id]) : undefined
  if (!isFilled || destinationTxHash === undefined) return { state: 'pending', partnerStatus: 'deposited' }
  const isOther = !sameAddress(token, to.token.address)
  const received = { chainId: to.network.chainId, token, rawAmount, isOther }
  return { state: 'completed', partnerStatus: 'filled', received, destinationTxHash }
}

function topicOf(event: string): Hex {
  return bytesToHex(keccak256(utf8(event)))
}

function isCoin(address: Address): boolean {
  return sameAddress(address, zeroAddress)
}
