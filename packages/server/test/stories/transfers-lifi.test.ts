import { type DevChain, fundToken, installLifiDiamond, startChain, tokenBalance } from '@purser/devnet'
import { type Address, networkByName, zeroAddress } from '@purser/protocol'
import { concat, encodeAbiParameters, encodeFunctionData, type Hex, pad, parseAbi } from 'viem'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { lifiDiamond, spokePoolOn } from '../../src/partners/routing/lifi-contracts.ts'
import type { RouteRequest } from '../../src/partners/routing/port.ts'
import { aLiveStage, type LiveStage, nodeOf } from '../live-stage.ts'
import { addressOf, aSwap, bridging, singleSwap, zeros } from '../partner-calls.ts'
import { aPartner, type PartnerDouble, type PartnerRequest, type PartnerResponse } from '../partner-double.ts'
import { bridgeOf, stranger, swapOf } from '../partner-stage.ts'
import { codeOf } from '../world.ts'

const hash = `0x${'ef'.repeat(32)}` as const
const spokePool = spokePoolOn(8_453) ?? zeroAddress
const usdt = addressOf('ethereum', 'USDT')

let base: DevChain
let lifi: PartnerDouble
let stage: LiveStage
/** How the next quote differs from an honest one, and the status answers in order; the last one repeats. */
let lie: (requested: PartnerRequest) => Lie | PartnerResponse
let words: Map<string, PartnerResponse[]>

interface Lie {
  readonly to?: Address
  readonly approvalAddress?: Address
  readonly chainId?: number
  readonly value?: string
  readonly toAmountMin?: string
  /** The exchange's real output. */
  readonly paid?: bigint
  /** Replaces an honest call. */
  readonly data?: (request: RouteRequest) => Hex
}

beforeAll(async () => {
  base = await startChain({ network: 'base' })
  await installLifiDiamond(base, lifiDiamond)
  lifi = await aPartner(answered)
  stage = await aLiveStage([base], { lifi: { baseUrl: `${lifi.url}/v1`, apiKey: 'lifi-secret' } })
})
afterAll(async () => {
  await stage?.stop()
  await lifi?.stop()
  await base?.stop()
})
beforeEach(() => {
  lie = () => ({})
  words = new Map()
})

function answered(requested: PartnerRequest): PartnerResponse {
  if (requested.path === '/v1/status') {
    const replies = words.get(requested.query.txHash ?? '') ?? []
    return (replies.length > 1 ? replies.shift() : replies[0]) ?? { json: { status: 'NOT_FOUND' } }
  }
  const reported = lie(requested)
  return typeof reported === 'string' || 'json' in reported || 'text' in reported
    ? reported
    : quoteOf(requested.query, reported)
}

/** In the form of `GET /v1/quote`: fifty dollars are 49.9 there, or 0.015 ETH here. */
function quoteOf(query: PartnerRequest['query'], changes: Lie): PartnerResponse {
  const isSwap = query.fromChain === query.toChain
  const [toAmount, toAmountMin] = isSwap ? ['15000000000000000', '14950000000000000'] : ['49900000', '49800000']
  const token = (side: 'from' | 'to') => ({
    address: query[`${side}Token`],
    chainId: Number(query[`${side}Chain`]),
    symbol: 'TKN',
    decimals: 6,
    priceUSD: '1',
  })
  const request = requestIn(query)
  const callData = encodeAbiParameters([{ type: 'uint256' }], [changes.paid ?? BigInt(toAmount)])
  const swap = aSwap(request, { callTo: lifiDiamond, approveTo: lifiDiamond, callData })
  const outer = { to: request.toAddress, least: BigInt(toAmountMin) }
  const honest = isSwap ? singleSwap(request, swap, outer) : bridging(request)
  return {
    json: {
      id: 'e1c87be5-80be-4e2d-8c96-a6492566a739',
      type: 'lifi',
      tool: isSwap ? 'sushiswap' : 'across',
      action: {
        fromToken: token('from'),
        toToken: token('to'),
        fromAmount: query.fromAmount,
        toAddress: query.toAddress,
        slippage: 0.005,
      },
      estimate: {
        tool: 'across',
        ...{ fromAmount: query.fromAmount, toAmount, toAmountMin: changes.toAmountMin ?? toAmountMin },
        approvalAddress: changes.approvalAddress ?? lifiDiamond,
        executionDuration: 4,
        feeCosts: [{ name: 'LIFI Fixed Fee', amount: '25000', token: { symbol: 'USDC' }, included: true }],
      },
      includedSteps: [],
      integrator: 'lifi-api',
      transactionRequest: {
        from: query.fromAddress,
        to: changes.to ?? lifiDiamond,
        chainId: changes.chainId ?? 8_453,
        data: changes.data?.(request) ?? honest,
        value: changes.value ?? '0x0',
        gasPrice: '0x3eaf2c6',
        gasLimit: '0x45e8a',
      },
    },
  }
}

/** The route request that corresponds to our query. */
function requestIn(query: PartnerRequest['query']): RouteRequest {
  const end = (side: 'from' | 'to') => {
    const network = networkByName(query[`${side}Chain`] === '1' ? 'ethereum' : 'base')
    if (network === undefined) throw new Error('no network')
    return { network, token: { symbol: 'TKN', decimals: 6, address: query[`${side}Token`] as Address } }
  }
  return {
    ...{ from: end('from'), to: end('to'), rawAmount: BigInt(query.fromAmount ?? '0'), slippageBps: 50 },
    ...{ fromAddress: query.fromAddress as Address, toAddress: query.toAddress as Address },
  }
}

const reply = (status: string, substatus?: string, receiving?: object): PartnerResponse => ({
  json: {
    transactionId: zeros,
    status,
    ...(substatus && { substatus }),
    ...(receiving && { receiving }),
    tool: 'across',
  },
})
const arrived = (amount: string, changes: { readonly chainId?: number; readonly address?: Address } = {}) => ({
  chainId: changes.chainId ?? 1,
  txHash: hash,
  amount,
  token: { address: changes.address ?? usdt, symbol: 'USDT', decimals: 6 },
})
const toUsdt = { toToken: 'USDT' }
const done = reply('DONE', 'COMPLETED', arrived('49850000'))
const huge = { text: `{"status":"DONE","pad":"${'x'.repeat(3_000_000)}"}` }

const ends: readonly [string, PartnerResponse[], object, string][] = [
  [
    'is not seen, waits and arrives',
    [reply('NOT_FOUND'), { status: 404, json: { code: 1003 } }, reply('PENDING', 'WAIT_DESTINATION_TRANSACTION'), done],
    { status: 'confirmed', toAmount: '49.85', destinationTxHash: hash },
    'transfer.completed',
  ],
  [
    'is given back',
    [reply('DONE', 'REFUNDED', arrived('50000000'))],
    { status: 'failed', reason: 'refunded', refundTxHash: expect.stringMatching(/^0x[0-9a-f]{64}$/) },
    'transfer.failed',
  ],
  [
    'fails and is given back later',
    [
      reply('FAILED', 'REFUND_IN_PROGRESS'),
      reply('FAILED', 'UNKNOWN_FAILED_ERROR'),
      reply('DONE', 'REFUNDED', arrived('50000000')),
    ],
    { status: 'failed', reason: 'refunded' },
    'transfer.failed',
  ],
  [
    'fails for a cause that speaks of this side, and is given back all the same',
    [
      reply('FAILED', 'EXPIRED'),
      reply('FAILED', 'SLIPPAGE_EXCEEDED'),
      reply('PENDING', 'REFUND_IN_PROGRESS'),
      reply('DONE', 'REFUNDED', arrived('50000000')),
    ],
    {
      status: 'failed',
      reason: 'refunded',
      refundTxHash: expect.stringMatching(/^0x[0-9a-f]{64}$/),
      refundedAt: expect.any(String),
    },
    'transfer.failed',
  ],
  [
    'is in an undocumented state',
    [reply('MELTED'), reply('PENDING', 'SIDEWAYS'), reply('DONE', 'SIDEWAYS'), reply('INVALID'), done],
    { status: 'confirmed', toAmount: '49.85' },
    'transfer.completed',
  ],
  [
    'is first reported on another chain, in another token, with no amount and with less',
    [
      reply('DONE', 'COMPLETED', arrived('49850000', { chainId: 137 })),
      reply('DONE', 'COMPLETED', arrived('49850000', { address: zeroAddress })),
      reply('DONE', 'COMPLETED', arrived('0')),
      reply('DONE', 'PARTIAL', arrived('10000000000000000', { address: zeroAddress })),
      reply('DONE', 'COMPLETED', arrived('1000000')),
      reply('DONE', 'COMPLETED'),
      done,
    ],
    { status: 'confirmed', toAmount: '49.85', receivedToken: null },
    'transfer.completed',
  ],
  [
    'gets only unusable answers',
    [
      { status: 503, json: {} },
      { status: 429, json: { code: 1005 } },
      { text: '<html>' },
      huge,
      'cut',
      { status: 302, json: {}, headers: { location: 'http://127.0.0.1:9/' } },
      done,
    ],
    { status: 'confirmed', toAmount: '49.85' },
    'transfer.completed',
  ],
]

/** Copies the responses with another transaction in place of `hash`. */
function naming(sequence: readonly PartnerResponse[], refundTxHash: string): PartnerResponse[] {
  return sequence.map((one) =>
    typeof one === 'string' ? one : JSON.parse(JSON.stringify(one).replaceAll(hash, refundTxHash)),
  )
}

test('a bridge by LI.FI ends as reported, whatever its statuses, once', async () => {
  const sent = []
  for (const [which, sequence, end, event] of ends) {
    const master = await stage.aMaster()
    const response = await stage.send(bridgeOf(master, toUsdt))
    expect([response.status, response.body.status, response.body.toAmount], which).toEqual([201, 'pending', '49.9'])
    expect(await tokenBalance(base, 'USDC', master.address)).toBe(50_000_000n)
    const reported =
      'reason' in end ? naming(sequence, await fundToken(base, 'USDC', master.address, 50_000_000n)) : sequence
    words.set(String(response.body.txHash), [...reported])
    sent.push({ which, response, end, event })
  }
  for (const { which, response, end, event } of sent) {
    expect(await stage.ended(response), which).toMatchObject(end)
    expect(
      (await stage.eventsOf(response)).map(({ type }) => type),
      which,
    ).toEqual([event])
    expect(words.get(String(response.body.txHash)), which).toHaveLength(1)
  }
  expect(await tokenBalance(base, 'USDC', spokePool)).toBe(50_000_000n * BigInt(ends.length))
}, 180_000)

test('dollars are swapped for the coin by one approval and one call, and the amount received is reported', async () => {
  const master = await stage.aMaster()
  const body = swapOf(master, { fromToken: 'USDC', toToken: 'ETH', amount: '50' })
  const requested = lifi.requested.length
  const response = stage.send(body)
  const sentHash = async () => {
    await stage.mine()
    return lifi.requested.slice(requested).find(({ path }) => path === '/v1/status')?.query.txHash ?? ''
  }
  await expect.poll(sentHash, { interval: 50 }).toMatch(/^0x/)
  words.set(await sentHash(), [
    reply('DONE', 'COMPLETED', arrived('15000000000000000', { chainId: 8_453, address: zeroAddress })),
  ])
  const sent = await response
  expect([sent.status, sent.body.status, sent.body.route, sent.body.toAmount]).toEqual([
    201,
    'confirmed',
    'partner-swap',
    '0.015',
  ])
  expect(await nodeOf(base).getBalance({ address: body.toAddress })).toBe(15n * 10n ** 15n)
  expect(await stage.countOf(master.address, 'base')).toBe(2)
  expect(
    lifi.requested.slice(requested).filter(({ path }) => path === '/v1/quote'),
    'the quoted amount is the one sent',
  ).toHaveLength(1)
})

test('a market that gives less than promised by the time of the call is not called, and the money stays', async () => {
  const master = await stage.aMaster()
  lie = () => ({ paid: 1n })
  const refused = await stage.send(swapOf(master, { fromToken: 'USDC', toToken: 'ETH', amount: '50' }))
  expect([refused.status, codeOf(refused), refused.body.reason]).toEqual([422, 'transfer-reverted', null])
  expect(await stage.countOf(master.address, 'base'), 'not even the approval').toBe(0)
  expect(await tokenBalance(base, 'USDC', master.address)).toBe(100_000_000n)
})

test.each<[string, Lie | PartnerResponse]>([
  ['another contract called', { to: stranger() }],
  ['the token itself called', { to: addressOf('base', 'USDC') }],
  ['another contract approved', { approvalAddress: stranger() }],
  ['a call on another chain', { chainId: 1 }],
  ['coin on top', { value: '0x1' }],
  ['somebody else paid', { data: (requested) => bridging({ ...requested, toAddress: stranger() }) }],
  ['a refund to somebody else', { data: (requested) => bridging({ ...requested, fromAddress: stranger() }) }],
  [
    'another token delivered',
    { data: (requested) => bridging(requested, { across: { receivingAssetId: pad(stranger()) } }) },
  ],
  [
    'another chain delivered on',
    { data: (requested) => bridging(requested, { bridge: { destinationChainId: 137n } }) },
  ],
  ['less than the slippage', { toAmountMin: '49000000' }],
  ['a redirect followed', { status: 307, json: {}, headers: { location: 'http://127.0.0.1:9/' } }],
  ['an endless answer read', huge],
  ['something else than JSON read', { text: 'no' }],
  ['an empty answer read', { text: '' }],
  ['patience, with 500', { status: 500, json: { message: 'oops' } }],
  ['its key renewed, with 401', { status: 401, json: { message: 'Invalid API key' } }],
])('a LI.FI that requests %s gets nothing signed', async (_, change) => {
  const master = await stage.aMaster()
  lie = () => change
  const refused = await stage.send(bridgeOf(master, toUsdt))
  expect([refused.status, codeOf(refused)]).toEqual([503, 'partner-unavailable'])
  expect([await stage.countOf(master.address, 'base'), await tokenBalance(base, 'USDC', master.address)]).toEqual([
    0,
    100_000_000n,
  ])
})

const otherFacets = parseAbi([
  'struct Bridge { bytes32 transactionId; string bridge; string integrator; address referrer; address sendingAssetId; address receiver; uint256 minAmount; uint256 destinationChainId; bool hasSourceSwaps; bool hasDestinationCall; }',
  'struct DeBridge { bytes receivingAssetId; bytes receiver; bytes orderAuthorityDst; }',
  'function startBridgeTokensViaCBridgeERC20Min(bytes32 transactionId, address receiver, uint64 destinationChainId, address sendingAssetId, uint256 amount, uint64 nonce, uint32 maxSlippage)',
  'function startBridgeTokensViaDeBridgeDln(Bridge bridge, DeBridge debridge) payable',
])

/** A packed facet reads its own arguments; the struct after them is a decoy for a naive decoder. */
function packedWithDecoy(requested: RouteRequest): Hex {
  const args = [pad('0xe0'), stranger(), 1n, requested.from.token.address, requested.rawAmount, 1n, 5_000] as const
  const call = encodeFunctionData({ abi: otherFacets, functionName: 'startBridgeTokensViaCBridgeERC20Min', args })
  return concat([call, `0x${bridging(requested).slice(10)}`])
}

function ownReceiver({ from, to, rawAmount, toAddress }: RouteRequest): Hex {
  const data = {
    ...{ transactionId: zeros, bridge: 'deBridge', integrator: 'lifi-api', referrer: zeroAddress },
    ...{ sendingAssetId: from.token.address, receiver: toAddress, minAmount: rawAmount },
    ...{ destinationChainId: BigInt(to.network.chainId), hasSourceSwaps: false, hasDestinationCall: false },
  }
  const own = { receivingAssetId: to.token.address, receiver: stranger(), orderAuthorityDst: stranger() }
  return encodeFunctionData({ abi: otherFacets, functionName: 'startBridgeTokensViaDeBridgeDln', args: [data, own] })
}

test.each([
  ['a packed facet with a decoy after its arguments', packedWithDecoy],
  ['a facet that pays another receiver', ownReceiver],
])('%s is no route: nothing is signed, and the operator’s log has the call', async (_, data) => {
  const master = await stage.aMaster()
  lie = () => ({ data })
  const refused = await stage.send(bridgeOf(master, toUsdt))
  expect([refused.status, codeOf(refused), refused.body.reason]).toEqual([422, 'no-route', 'no-route'])
  expect(await stage.countOf(master.address, 'base')).toBe(0)
  expect(stage.lines.join('')).toContain('a partner offers a call that is not supported here')
})

test('a swap into a worthless token is not signed, in whatever amount', async () => {
  const master = await stage.aMaster()
  lie = () => ({
    data: (requested) => singleSwap(requested, aSwap(requested, { receivingAssetId: requested.from.token.address })),
  })
  const refused = await stage.send(swapOf(master, { fromToken: 'USDC', toToken: 'ETH', amount: '50' }))
  expect([refused.status, codeOf(refused)]).toEqual([422, 'no-route'])
  expect(await stage.countOf(master.address, 'base')).toBe(0)
  expect(await tokenBalance(base, 'USDC', master.address)).toBe(100_000_000n)
})

test('a changed diamond that pays somebody else by well-formed calls is detected before anything is signed', async () => {
  const thief = stranger()
  const onSwap = (requested: RouteRequest) => {
    const callData = encodeAbiParameters([{ type: 'uint256' }], [15n * 10n ** 15n])
    const swap = aSwap(requested, { callTo: lifiDiamond, approveTo: thief, callData })
    return singleSwap(requested, swap, { to: requested.toAddress, least: 14_950_000_000_000_000n })
  }
  const onBridge = (requested: RouteRequest) => bridging(requested, { bridge: { referrer: thief } })
  for (const [data, body] of [
    [onSwap, { fromToken: 'USDC', toToken: 'ETH', toChain: 'base', amount: '50', minToAmount: '0.01' }],
    [onBridge, toUsdt],
  ] as const) {
    const master = await stage.aMaster()
    lie = () => ({ data })
    const refused = await stage.send(bridgeOf(master, body))
    expect([refused.status, codeOf(refused), refused.body.reason]).toEqual([503, 'partner-unavailable', 'unsafe-call'])
    expect([await stage.countOf(master.address, 'base'), await tokenBalance(base, 'USDC', master.address)]).toEqual([
      0,
      100_000_000n,
    ])
  }
  expect([await tokenBalance(base, 'USDC', thief), await nodeOf(base).getBalance({ address: thief })]).toEqual([0n, 0n])
  expect(stage.lines.join('')).toContain('does not make the expected balance changes')
})

test('LI.FI’s key is in every request and in no line that was logged', () => {
  expect(new Set(lifi.requested.map(({ headers }) => headers['x-lifi-api-key']))).toEqual(new Set(['lifi-secret']))
  expect(stage.lines.join('')).toMatch(/MELTED/)
  expect(stage.lines.join('')).not.toContain('lifi-secret')
})
