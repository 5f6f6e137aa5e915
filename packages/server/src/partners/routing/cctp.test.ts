import { type Address, encodeTransfer, type Hex, multicall3Address, networkByName } from '@purser/protocol'
import { concat, decodeFunctionData, encodeAbiParameters, encodePacked, keccak256, pad, parseAbi, toHex } from 'viem'
import { afterEach, beforeEach, expect, test } from 'vitest'
import {
  aPartner,
  type PartnerDouble,
  type PartnerRequest,
  type PartnerResponse,
} from '../../../test/partner-double.ts'
import { endOn, receiver, requestFor, stranger } from '../../../test/routes.ts'
import { instantOf } from '../../platform/clock.ts'
import { createLog } from '../../platform/log.ts'
import { createOutbound, type Outbound } from '../../platform/outbound.ts'
import { createCctp } from './cctp.ts'
import { cctpContracts } from './cctp-calls.ts'
import type { ChainLog, ChainReader, DeliveryReader, RoutingPartner, SentRoute } from './port.ts'
import recorded from './vectors/iris-messages.json' with { type: 'json' }

const abi = parseAbi([
  'function approve(address spender, uint256 value)',
  'function depositForBurn(uint256 amount, uint32 destinationDomain, bytes32 mintRecipient, address burnToken, bytes32 destinationCaller, uint256 maxFee, uint32 minFinalityThreshold)',
  'function receiveMessage(bytes message, bytes attestation)',
  'function usedNonces(bytes32 nonce)',
])

let outbound: Outbound
let iris: PartnerDouble
let cctp: RoutingPartner
let answer: (requested: PartnerRequest) => PartnerResponse
let used: boolean
let refusal: string | undefined
/** The reason with which the USDC of the destination refuses a call. */
let tokenRefusal: (data: Hex) => string | undefined
let isFinal: boolean
/** The block number that contracts see. */
let block: bigint
/** The chain's own block number, which is another on Arbitrum. */
let chainHead: bigint
/** Logs of the burn's transaction; undefined when it is not mined. */
let sent: readonly ChainLog[] | undefined
let called: { readonly network: string; readonly to: Address; readonly data: Hex }[]

beforeEach(async () => {
  outbound = createOutbound()
  iris = await aPartner((requested) => answer(requested))
  answer = () => ({ json: fees })
  ;[used, isFinal, block, chainHead, called] = [false, true, 100n, 100n, []]
  refusal = 'Nonce already used'
  tokenRefusal = () => undefined
  sent = [messageSent(messageWith({ nonce: pad('0x'), rawFee: 0n, finalityExecuted: 0 }))]
  const reader: ChainReader = {
    call: async ({ name }: { readonly name: string }, to: Address, data: Hex) => {
      if (to === multicall3Address) return toHex(block, { size: 32 })
      called.push({ network: name, to, data })
      return toHex(used ? 1n : 0n, { size: 32 })
    },
    blockNumber: async () => chainHead,
    logs: async () => sent,
  }
  const clock = { now: () => instantOf(1_790_000_000_000) }
  const log = createLog({ level: 'silent' })
  const deliveries: DeliveryReader = {
    numberAtDepth: async () => (used && isFinal ? 1n : 0n),
    refusalOf: async (_, call) => (call.to === request.to.token.address ? tokenRefusal(call.data) : refusal),
  }
  cctp = createCctp({ outbound, log, clock, reader, deliveries }, { baseUrl: iris.url, timeoutMs: 1_000 })
})
afterEach(async () => {
  await outbound.close()
  await iris.stop()
})

const fees = [
  { finalityThreshold: 1_000, minimumFee: 1.3 },
  { finalityThreshold: 2_000, minimumFee: 0 },
]
const request = requestFor(endOn('base', 'USDC'), endOn('ethereum', 'USDC'))

test('a quote burns the exact amount for the receiver, with a maximum fee a fifth above Circle’s fee', async () => {
  const quoted = await cctp.quote(request)
  if (!quoted.ok) throw new Error(quoted.words)
  expect(iris.requested).toMatchObject([{ method: 'GET', path: '/v2/burn/USDC/fees/6/0', query: {} }])
  const { quote } = quoted
  expect(quote).toMatchObject({ rawOut: 9_998_700n, rawOutMin: 9_998_440n, reference: '6', etaSeconds: 15 })
  expect(quote.fees).toEqual([{ name: 'Circle', symbol: 'USDC', rawAmount: 1_300n }])
  const { tokenMessenger } = cctpContracts(request.from.network)
  expect(quote.calls.map(({ to, chainId, value }) => [to, chainId, value])).toEqual([
    [request.from.token.address, 8_453, 0n],
    [tokenMessenger, 8_453, 0n],
  ])
  const [approve, burn] = quote.calls.map(({ data }) => decodeFunctionData({ abi, data }))
  expect(approve).toEqual({ functionName: 'approve', args: [tokenMessenger, 10_000_000n] })
  expect(burn).toEqual({
    functionName: 'depositForBurn',
    args: [10_000_000n, 0, pad(receiver).toLowerCase(), request.from.token.address, pad('0x'), 1_560n, 1_000],
  })
})

test('the margin on the fee is limited by the slippage', async () => {
  const minimums = [1, 0].map(async (slippageBps) => cctp.quote({ ...request, slippageBps }))
  expect(await Promise.all(minimums)).toMatchObject([
    { quote: { rawOut: 9_998_700n, rawOutMin: 9_998_440n } },
    { quote: { rawOut: 9_998_700n, rawOutMin: 9_998_700n } },
  ])
})

test('on a chain with fast finality, or without an early fee from Circle, the burn is standard and free', async () => {
  const slow = async (from: Parameters<typeof endOn>[0]) =>
    cctp.quote(requestFor(endOn(from, 'USDC'), endOn('ethereum', 'USDC')))
  expect(await slow('polygon')).toMatchObject({ quote: { rawOutMin: 10_000_000n, fees: [{ rawAmount: 0n }] } })
  answer = () => ({ json: fees.slice(1) })
  expect(await slow('base')).toMatchObject({ quote: { rawOutMin: 10_000_000n, etaSeconds: 1_140 } })
})

test('there is no quote for unsupported chains, without a fee, or when the fee takes everything', async () => {
  const tempo = requestFor(endOn('base', 'USDC'), endOn('tempo', 'USDC_E'))
  expect(await cctp.quote(tempo)).toMatchObject({ ok: false, reason: 'no-route' })
  expect(iris.requested).toEqual([])
  answer = () => ({ json: [] })
  expect(await cctp.quote(request)).toMatchObject({ ok: false, reason: 'no-route' })
  answer = () => ({ json: [{ finalityThreshold: 1_000, minimumFee: 10_000 }] })
  expect(await cctp.quote(request)).toMatchObject({ ok: false, reason: 'amount-too-low' })
  answer = () => ({ json: [{ finalityThreshold: 1_000, minimumFee: -1 }] })
  await expect(cctp.quote(request)).rejects.toMatchObject({ code: 'partner-unavailable' })
})

test('nothing is burned for a recipient that the USDC of the other chain refuses', async () => {
  const reason = 'Blacklistable: account is blacklisted'
  tokenRefusal = (data) => (data === encodeTransfer(receiver, 0n) ? reason : undefined)
  expect(await cctp.quote(request)).toEqual({ ok: false, reason: 'recipient-refused', words: reason })
  expect(await cctp.quote({ ...request, toAddress: stranger })).toMatchObject({ ok: true })
})

const nonce = `0x${'ab'.repeat(32)}` as const
const route: SentRoute = { request, rawOutMin: 1n, reference: '6', txHash: `0x${'12'.repeat(32)}` }
const attestation = `0x${'77'.repeat(130)}` as const

/** MessageV2 around BurnMessageV2, as circlefin/evm-cctp-contracts lays them out. */
function messageWith(
  changes: {
    readonly destination?: number
    readonly sender?: Address
    readonly recipient?: Address
    readonly nonce?: Hex
    readonly rawAmount?: bigint
    readonly rawFee?: bigint
    readonly rawFeeMax?: bigint
    readonly finalityExecuted?: number
    readonly expirationBlock?: bigint
  } = {},
): Hex {
  const { tokenMessenger } = cctpContracts(request.from.network)
  const header = encodePacked(
    ['uint32', 'uint32', 'uint32', 'bytes32', 'bytes32', 'bytes32', 'bytes32', 'uint32', 'uint32'],
    [
      1,
      6,
      changes.destination ?? 0,
      changes.nonce ?? nonce,
      pad(tokenMessenger),
      pad(tokenMessenger),
      pad('0x'),
      1_000,
      changes.finalityExecuted ?? 1_000,
    ],
  )
  const body = encodePacked(
    ['uint32', 'bytes32', 'bytes32', 'uint256', 'bytes32', 'uint256', 'uint256', 'uint256'],
    [
      1,
      pad(request.from.token.address),
      pad(changes.recipient ?? receiver),
      changes.rawAmount ?? 10_000_000n,
      pad(changes.sender ?? request.fromAddress),
      changes.rawFeeMax ?? 1_560n,
      changes.rawFee ?? 1_300n,
      changes.expirationBlock ?? 0n,
    ],
  )
  return concat([header, body])
}

/** A log of MessageTransmitterV2. */
function messageSent(message: Hex, address = cctpContracts(request.from.network).messageTransmitter): ChainLog {
  const topics = [keccak256(toHex('MessageSent(bytes)'))]
  return { address, topics, data: encodeAbiParameters([{ type: 'bytes' }], [message]) }
}

const reportOf = (changes: object) => {
  const message = { message: messageWith(), attestation, eventNonce: nonce, cctpVersion: 2, status: 'complete' }
  return { ...message, ...changes }
}
const reported = (changes: object): PartnerResponse => ({ json: { messages: [reportOf(changes)] } })

test('a burn that Circle has not seen or not attested yet is pending', async () => {
  answer = () => ({ status: 404, json: { error: 'Message not found' } })
  expect(await cctp.status(route)).toEqual({ state: 'pending', partnerStatus: 'not-seen' })
  expect(iris.requested).toMatchObject([{ path: '/v2/messages/6', query: { transactionHash: route.txHash } }])
  answer = () => ({ json: { messages: [] } })
  expect(await cctp.status(route)).toEqual({ state: 'pending', partnerStatus: 'not-seen' })
  answer = () => ({ json: recorded.pending })
  expect(await cctp.status(route)).toEqual({ state: 'pending', partnerStatus: 'pending_confirmations' })
  answer = () => reported({ status: 'pending_confirmations', delayReason: 'insufficient_fee' })
  expect(await cctp.status(route)).toEqual({ state: 'pending', partnerStatus: 'insufficient_fee' })
  answer = () => reported({ attestation: 'PENDING' })
  expect(await cctp.status(route)).toMatchObject({ state: 'pending' })
})

test('an undocumented status stays pending', async () => {
  answer = () => reported({ status: 'evaporated' })
  expect(await cctp.status(route)).toEqual({ state: 'pending', partnerStatus: 'evaporated', isUnknown: true })
})

test('an attested message becomes one call on the destination chain, which anyone may send', async () => {
  answer = () => reported({})
  const status = await cctp.status(route)
  if (status.state !== 'claimable') throw new Error(status.state)
  expect(status.message).toBe(nonce)
  const { messageTransmitter } = cctpContracts(request.to.network)
  expect([status.call.chainId, status.call.to, status.call.value]).toEqual([1, messageTransmitter, 0n])
  expect(decodeFunctionData({ abi, data: status.call.data })).toEqual({
    functionName: 'receiveMessage',
    args: [messageWith().toLowerCase(), attestation],
  })
  expect(called).toEqual([expect.objectContaining({ network: 'ethereum', to: messageTransmitter })])
  expect(decodeFunctionData({ abi, data: called[0]?.data ?? '0x' })).toEqual({
    functionName: 'usedNonces',
    args: [nonce],
  })
})

test('once delivered by anyone it is completed, less the fee', async () => {
  answer = () => reported({})
  used = true
  expect(await cctp.status(route)).toEqual({
    state: 'completed',
    partnerStatus: 'complete',
    message: nonce,
    received: { chainId: 1, token: request.to.token.address, rawAmount: 9_998_700n, isOther: false },
  })
})

test.each(['Invalid signature: not attester', undefined])(
  'a used nonce of a message whose attestation the contract refuses (%s) is no delivery',
  async (reason) => {
    answer = () => reported({})
    used = true
    refusal = reason
    await expect(cctp.status(route)).rejects.toMatchObject({ code: 'partner-unavailable' })
  },
)

test('a delivery that may still be reorganized away is pending', async () => {
  answer = () => reported({})
  ;[used, isFinal] = [true, false]
  expect(await cctp.status(route)).toEqual({ state: 'pending', partnerStatus: 'delivered-not-final' })
})

test('an expired attestation is requested again, and one delivered before it expired is not', async () => {
  const expired = messageWith({ expirationBlock: 100n })
  answer = ({ method }) => (method === 'POST' ? { json: { nonce } } : reported({ message: expired }))
  expect(await cctp.status(route)).toEqual({ state: 'pending', partnerStatus: 'attestation-expired' })
  expect(iris.requested.at(-1)).toMatchObject({ method: 'POST', path: `/v2/reattest/${nonce}` })
  block = 98n
  expect(await cctp.status(route)).toMatchObject({ state: 'claimable' })
  block = 99n
  expect(await cctp.status(route), 'no future block accepts it').toMatchObject({ state: 'pending' })
  ;[block, used] = [100n, true]
  expect(await cctp.status(route)).toMatchObject({ state: 'completed' })
  expect(iris.requested.filter(({ method }) => method === 'POST')).toHaveLength(2)
})

test('a fast transfer to Arbitrum expires by the block number that its contracts see, which is Ethereum’s', async () => {
  const toArbitrum = { ...route, request: requestFor(endOn('base', 'USDC'), endOn('arbitrum', 'USDC')) }
  const destination = toArbitrum.request.to.network.cctp?.domain ?? -1
  const attested = messageWith({ destination, expirationBlock: 23_239_468n })
  sent = [messageSent(messageWith({ destination, nonce: pad('0x'), rawFee: 0n, finalityExecuted: 0 }))]
  answer = ({ method }) => (method === 'POST' ? { json: { nonce } } : reported({ message: attested }))
  ;[block, chainHead] = [23_232_300n, 372_000_000n]
  expect(await cctp.status(toArbitrum)).toMatchObject({ state: 'claimable', call: { chainId: 42_161 } })
  block = 23_239_467n
  expect(await cctp.status(toArbitrum)).toEqual({ state: 'pending', partnerStatus: 'attestation-expired' })
  expect(iris.requested.filter(({ method }) => method === 'POST')).toHaveLength(1)
})

test.each([
  ['another recipient', { recipient: stranger }],
  ['somebody else’s tokens', { sender: stranger }],
  ['no nonce', { nonce: pad('0x') }, { eventNonce: null }],
  ['another amount', { rawAmount: 9_999_999n }],
  ['another chain', { destination: 3 }],
  ['a fee of everything', { rawFee: 10_000_000n }],
  ['a different maximum fee than in the burn', { rawFeeMax: 1_561n }],
  ['a different nonce than Circle reports', { nonce: pad('0x77') }],
])('a message with %s is never delivered by us', async (_, changes, beside: object = {}) => {
  answer = () => reported({ message: messageWith(changes), ...beside })
  await expect(cctp.status(route)).rejects.toMatchObject({ code: 'partner-unavailable' })
})

test('of several messages in one transaction, the one at our burn’s position is used', async () => {
  const [own] = sent ?? []
  if (own === undefined) throw new Error('nothing was sent')
  const { tokenMessenger } = cctpContracts(request.from.network)
  sent = [
    messageSent(messageWith({ nonce: pad('0x'), sender: stranger })),
    messageSent(messageWith({ nonce: pad('0x') }), tokenMessenger),
    own,
  ]
  const others = reportOf({ message: messageWith({ sender: stranger, nonce: pad('0x01') }), eventNonce: pad('0x01') })
  answer = () => ({ json: { messages: [others] } })
  expect(await cctp.status(route)).toEqual({ state: 'pending', partnerStatus: 'not-seen' })
  answer = () => ({ json: { messages: [others, reportOf({})] } })
  expect(await cctp.status(route)).toMatchObject({ state: 'claimable', message: nonce })
  answer = () => ({ json: { messages: [reportOf({}), others] } })
  await expect(cctp.status(route)).rejects.toMatchObject({ code: 'partner-unavailable' })
})

test('a burn that the node does not have is pending', async () => {
  answer = () => reported({})
  sent = undefined
  expect(await cctp.status(route)).toEqual({ state: 'pending', partnerStatus: 'burn-not-seen' })
  expect(called).toEqual([])
})

test('a message that is not a burn is never delivered', async () => {
  for (const message of [
    '0x',
    '0x00',
    encodeAbiParameters([{ type: 'uint256' }], [1n]),
    `${messageWith().slice(0, -80)}`,
  ]) {
    answer = () => reported({ message })
    await expect(cctp.status(route)).rejects.toMatchObject({ code: 'partner-unavailable' })
  }
})

test.each(['silence', 'cut', { text: 'no' }, { status: 503, json: {} }] as const)(
  '%o is not an answer',
  async (response) => {
    answer = () => response
    await expect(cctp.quote(request)).rejects.toMatchObject({ code: 'partner-unavailable' })
    await expect(cctp.status(route)).rejects.toMatchObject({ code: 'partner-unavailable' })
  },
)

test('Circle’s chains are our networks except Tempo', () => {
  const domains = ['ethereum', 'optimism', 'arbitrum', 'base', 'polygon'] as const
  expect(domains.map((name) => endOn(name, 'USDC').network.cctp?.domain)).toEqual([0, 2, 3, 6, 7])
  expect(networkByName('tempo')?.cctp).toBeNull()
})
