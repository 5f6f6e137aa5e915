import { type Hex, zeroAddress } from '@purser/protocol'
import { encodeFunctionData, erc20Abi } from 'viem'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { aSwap, bridging, multipleSwaps, singleSwap, swappingAndBridging } from '../../../test/partner-calls.ts'
import { aPartner, type PartnerDouble, type PartnerResponse } from '../../../test/partner-double.ts'
import { endOn, receiver, requestFor, sender, stranger } from '../../../test/routes.ts'
import { instantOf } from '../../platform/clock.ts'
import { createOutbound, type Outbound } from '../../platform/outbound.ts'
import { createLifi } from './lifi.ts'
import { lifiDiamond } from './lifi-contracts.ts'
import { lifiStatusOf } from './lifi-status.ts'
import type { RouteRequest, RoutingPartner } from './port.ts'

let outbound: Outbound
let double: PartnerDouble
let lifi: RoutingPartner
let reported: PartnerResponse

beforeEach(async () => {
  outbound = createOutbound()
  double = await aPartner(() => reported)
  const clock = { now: () => instantOf(1_790_000_000_000) }
  lifi = createLifi({ outbound, clock }, { baseUrl: double.url, apiKey: 'lk', timeoutMs: 1_000 })
})
afterEach(async () => {
  await outbound.close()
  await double.stop()
})

const bridge = requestFor(endOn('base', 'USDC'), endOn('ethereum', 'USDT'))
const swap = requestFor(endOn('ethereum', 'USDC'), endOn('ethereum', 'USDT'))
const ofCoin = requestFor(endOn('base', 'native'), endOn('base', 'USDC'), 10n ** 18n)

/** In the shape of `GET /quote`. */
function stepOf(request: RouteRequest, data: Hex, changes: Record<string, object> = {}): PartnerResponse {
  const { from, to, rawAmount } = request
  const token = (end: RouteRequest['from']) => ({ ...end.token, chainId: end.network.chainId, priceUSD: '1' })
  const isCoin = from.token.address === zeroAddress
  return {
    json: {
      id: 'e1c87be5-80be-4e2d-8c96-a6492566a739',
      type: 'lifi',
      tool: 'across',
      action: {
        fromChainId: from.network.chainId,
        toChainId: to.network.chainId,
        fromToken: token(from),
        toToken: token(to),
        fromAmount: rawAmount.toString(),
        slippage: 0.005,
        fromAddress: sender,
        toAddress: receiver,
        ...changes.action,
      },
      estimate: {
        tool: 'across',
        toAmount: '10000000',
        toAmountMin: '9950000',
        approvalAddress: lifiDiamond,
        executionDuration: 4,
        feeCosts: [{ name: 'LIFI Fixed Fee', amount: '25000', token: { symbol: 'USDC' }, included: true }],
        ...changes.estimate,
      },
      includedSteps: [],
      integrator: 'lifi-api',
      transactionRequest: {
        from: sender,
        to: lifiDiamond,
        chainId: from.network.chainId,
        data,
        value: isCoin ? `0x${rawAmount.toString(16)}` : '0x0',
        gasPrice: '0x3eaf2c6',
        gasLimit: '0x45e8a',
        ...changes.transactionRequest,
      },
    },
  }
}

test('a bridge quote is requested without a destination call and has an exact approval', async () => {
  reported = stepOf(bridge, bridging(bridge))
  const quoted = await lifi.quote(bridge)
  if (!quoted.ok) throw new Error(quoted.words)
  expect(quoted.quote).toMatchObject({
    partner: 'lifi',
    reference: 'across',
    rawOut: 10_000_000n,
    rawOutMin: 9_950_000n,
    etaSeconds: 4,
    fees: [{ name: 'LIFI Fixed Fee', symbol: 'USDC', rawAmount: 25_000n }],
  })
  expect(quoted.quote.calls).toEqual([
    {
      chainId: 8_453,
      to: bridge.from.token.address,
      value: 0n,
      data: encodeFunctionData({ abi: erc20Abi, functionName: 'approve', args: [lifiDiamond, 10_000_000n] }),
    },
    { chainId: 8_453, to: lifiDiamond, value: 0n, data: bridging(bridge) },
  ])
  expect(double.requested).toMatchObject([
    {
      method: 'GET',
      path: '/quote',
      headers: { 'x-lifi-api-key': 'lk' },
      query: {
        fromChain: '8453',
        toChain: '1',
        fromToken: bridge.from.token.address,
        toToken: bridge.to.token.address,
        fromAmount: '10000000',
        fromAddress: sender,
        toAddress: receiver,
        slippage: '0.005',
        order: 'CHEAPEST',
        allowDestinationCall: 'false',
        allowBridges: 'across',
      },
    },
  ])
})

test('a swap with the right receiver and minimum is signed', async () => {
  reported = stepOf(swap, singleSwap(swap))
  expect(await lifi.quote(swap)).toMatchObject({ ok: true, quote: { rawOutMin: 9_950_000n } })
})

test('for the native coin there is no approval, and the call value is exactly the amount', async () => {
  const data = multipleSwaps(ofCoin, [aSwap(ofCoin)])
  reported = stepOf(ofCoin, data)
  expect(await lifi.quote(ofCoin)).toMatchObject({
    ok: true,
    quote: { calls: [{ to: lifiDiamond, value: 10n ** 18n }] },
  })
  reported = stepOf(ofCoin, data, { transactionRequest: { value: `0x${(10n ** 18n + 1n).toString(16)}` } })
  expect(await lifi.quote(ofCoin)).toEqual({ ok: false, reason: 'unsafe', words: 'value-differs' })
})

test('a bridge after LI.FI’s fee is decoded to Across’ minimum payout', async () => {
  const { estimate } = { estimate: { toAmount: '9960000', toAmountMin: '9950000' } }
  reported = stepOf(bridge, swappingAndBridging(bridge), { estimate })
  expect(await lifi.quote(bridge)).toMatchObject({ ok: true, quote: { rawOutMin: 9_950_000n } })
})

test.each<readonly [string, Hex]>([
  ['a function that is not on the list', '0xdeadbeef'],
  ['a non-canonical encoding of a listed function', `${bridging(bridge)}${'00'.repeat(32)}`],
])('%s is no route, and the result names the call for the operator', async (_, data) => {
  reported = stepOf(bridge, data)
  const quoted = await lifi.quote(bridge)
  expect(quoted).toMatchObject({ ok: false, reason: 'no-route' })
  expect(quoted.ok ? '' : quoted.undecodedCall).toContain(data.slice(0, 10))
})

test('LI.FI does not bridge to a native coin, because the form in which it arrives is unknown', async () => {
  const toCoin = requestFor(endOn('base', 'USDC'), endOn('ethereum', 'native'))
  expect(await lifi.quote(toCoin)).toMatchObject({ ok: false, reason: 'no-route' })
  expect(double.requested).toEqual([])
})

test.each<readonly [string, Hex, Record<string, object>, string]>([
  ['another chain in the bytes', bridging(bridge, { bridge: { destinationChainId: 137n } }), {}, 'destination-differs'],
  ['more in the bytes', bridging(bridge, { bridge: { minAmount: 10_000_001n } }), {}, 'amount-differs'],
  ['another target', bridging(bridge), { transactionRequest: { to: stranger } }, 'target-not-listed'],
  ['the token as the target', bridging(bridge), { transactionRequest: { to: bridge.from.token.address } }, 'no-call'],
  ['another chain to sign on', bridging(bridge), { transactionRequest: { chainId: 1 } }, 'wrong-chain'],
  ['coin along with it', bridging(bridge), { transactionRequest: { value: '0x1' } }, 'value-differs'],
  [
    'another account to approve',
    bridging(bridge),
    { estimate: { approvalAddress: stranger } },
    'approval-to-other-spender',
  ],
  ['another recipient in the quote', bridging(bridge), { action: { toAddress: stranger } }, 'recipient-differs'],
  ['another amount in the quote', bridging(bridge), { action: { fromAmount: '10000001' } }, 'amount-differs'],
  [
    'a least amount below what was allowed',
    bridging(bridge),
    { estimate: { toAmountMin: '9949999' } },
    'minimum-too-low',
  ],
])('%s is refused, with its reason', async (_, data, changes, words) => {
  reported = stepOf(bridge, data, changes)
  const quoted = await lifi.quote(bridge)
  if (words === 'no-call') expect(quoted).toMatchObject({ ok: false, reason: 'unsafe' })
  else expect(quoted).toEqual({ ok: false, reason: 'unsafe', words })
})

test.each<readonly [Hex, string]>([
  [singleSwap(swap, undefined, { to: stranger }), 'recipient-differs'],
  [singleSwap(swap, undefined, { least: 9_949_999n }), 'minimum-too-low'],
  [singleSwap(swap, aSwap(swap, { receivingAssetId: stranger })), 'token-differs'],
])('a swap whose bytes mean %s is refused', async (data, words) => {
  reported = stepOf(swap, data)
  expect(await lifi.quote(swap)).toEqual({ ok: false, reason: 'unsafe', words })
})

test('LI.FI is not requested for Tempo or test networks', async () => {
  expect(await lifi.quote(requestFor(endOn('base', 'USDC'), endOn('tempo', 'USDC_E')))).toMatchObject({
    reason: 'no-route',
  })
  expect(double.requested).toEqual([])
})

const toolError = (code: string) => ({ errorType: 'NO_QUOTE', code, tool: 'across', message: 'no' })

test.each([
  [{ code: 1_002, message: 'No available quotes', errors: [toolError('NO_POSSIBLE_ROUTE')] }, 'no-route'],
  [
    { code: 1_002, message: 'no', errors: [toolError('NO_POSSIBLE_ROUTE'), toolError('AMOUNT_TOO_LOW')] },
    'amount-too-low',
  ],
  [{ code: 1_002, message: 'no', errors: [toolError('FEES_HIGHER_THAN_AMOUNT')] }, 'amount-too-low'],
  [{ code: 1_002, message: 'no', errors: [toolError('INSUFFICIENT_LIQUIDITY')] }, 'amount-too-high'],
  [{ code: 1_002, message: 'no', errors: [toolError('AMOUNT_TOO_HIGH')] }, 'amount-too-high'],
  [{ code: 1_011, message: 'validation' }, 'no-route'],
])('%o is %s', async (json, reason) => {
  reported = { status: 404, json }
  expect(await lifi.quote(bridge)).toMatchObject({ ok: false, reason })
})

test('a rate limit is temporary and does not end a route', async () => {
  reported = { status: 429, json: { code: 1_005, message: 'rate limit' } }
  await expect(lifi.quote(bridge)).rejects.toMatchObject({ code: 'partner-unavailable' })
})

const hash = `0x${'ef'.repeat(32)}` as const
const receiving = { chainId: 1, txHash: hash, rawAmount: 9_960_000n, token: bridge.to.token.address }
const requested = { ...bridge, rawOutMin: 9_950_000n }
const seen = (status: string, substatus?: string) => lifiStatusOf({ status, substatus, receiving }, requested)

test.each([
  'WAIT_SOURCE_CONFIRMATIONS',
  'WAIT_DESTINATION_TRANSACTION',
  'BRIDGE_NOT_AVAILABLE',
  'CHAIN_NOT_AVAILABLE',
  'UNKNOWN_ERROR',
  'INTENT_AWAITING_FUNDS',
  'INTENT_READY',
  'INTENT_EXECUTING',
  'INTENT_FAILED_RETRYABLE',
  'INTENT_SIMULATION_FAILURE',
])('PENDING/%s is pending', (substatus) => {
  expect(seen('PENDING', substatus)).toEqual({ state: 'pending', partnerStatus: `PENDING/${substatus}` })
})

test.each([
  ['FAILED', 'INSUFFICIENT_ALLOWANCE', 'unknown'],
  ['FAILED', 'INSUFFICIENT_BALANCE', 'unknown'],
  ['FAILED', 'OUT_OF_GAS', 'unknown'],
  ['FAILED', 'EXPIRED', 'unknown'],
  ['FAILED', 'SLIPPAGE_EXCEEDED', 'unknown'],
  ['FAILED', 'UNKNOWN_FAILED_ERROR', 'unknown'],
  ['FAILED', 'SOMETHING_NEW', 'unknown'],
  ['FAILED', 'REFUND_IN_PROGRESS', 'pending'],
  ['FAILED', 'NOT_PROCESSABLE_REFUND_NEEDED', 'pending'],
  ['PENDING', 'REFUND_IN_PROGRESS', 'pending'],
  ['PENDING', 'NOT_PROCESSABLE_REFUND_NEEDED', 'pending'],
])('%s/%s has failed, and its refund is %s', (status, substatus, refund) => {
  expect(seen(status, substatus)).toMatchObject({ state: 'failed', refund })
})

test('DONE is a success only when the requested token arrived', () => {
  const received = { chainId: 1, token: bridge.to.token.address, rawAmount: 9_960_000n }
  expect(seen('DONE', 'COMPLETED')).toMatchObject({
    state: 'completed',
    received: { ...received, isOther: false },
    destinationTxHash: hash,
  })
  expect(seen('DONE', 'PARTIAL')).toMatchObject({ state: 'completed', received: { ...received, isOther: false } })
  for (const status of ['DONE', 'FAILED'])
    expect(seen(status, 'REFUNDED')).toMatchObject({ state: 'failed', refund: 'done', refundTxHash: hash })
})

test.each<readonly [string, Parameters<typeof lifiStatusOf>[0]]>([
  ['on another chain', { status: 'DONE', substatus: 'COMPLETED', receiving: { ...receiving, chainId: 137 } }],
  ['in part on another chain', { status: 'DONE', substatus: 'PARTIAL', receiving: { ...receiving, chainId: 8_453 } }],
  ['of another token', { status: 'DONE', substatus: 'COMPLETED', receiving: { ...receiving, token: stranger } }],
  [
    'of a unit less than the least',
    { status: 'DONE', substatus: 'COMPLETED', receiving: { ...receiving, rawAmount: 9_949_999n } },
  ],
  ['in part, of another token', { status: 'DONE', substatus: 'PARTIAL', receiving: { ...receiving, token: stranger } }],
  ['of nothing', { status: 'DONE', substatus: 'COMPLETED', receiving: { ...receiving, rawAmount: 0n } }],
  ['of an unknown token', { status: 'DONE', substatus: 'COMPLETED', receiving: { chainId: 1, txHash: hash } }],
  ['to another account', { status: 'DONE', substatus: 'COMPLETED', receiving, toAddress: stranger }],
])('a delivery %s does not count: it stays pending for an operator', (_, response) => {
  expect(lifiStatusOf(response, requested)).toMatchObject({ state: 'pending', isUnknown: true })
})

test('a delivery with the request’s recipient counts', () => {
  const response = { status: 'DONE', substatus: 'COMPLETED', receiving, toAddress: receiver }
  expect(lifiStatusOf(response, requested)).toMatchObject({ state: 'completed' })
})

test.each([
  ['NOT_FOUND', undefined, false],
  ['PENDING', undefined, false],
  ['INVALID', undefined, true],
  ['DONE', 'SIDEWAYS', true],
  ['DONE', undefined, true],
  ['PENDING', 'SIDEWAYS', true],
  ['MELTED', undefined, true],
])('%s/%s is pending; needs an operator: %s', (status, substatus, isUnknown) => {
  expect(seen(status, substatus)).toMatchObject({ state: 'pending', ...(isUnknown ? { isUnknown } : {}) })
  expect('isUnknown' in seen(status, substatus)).toBe(isUnknown)
})

test('a status request has the hash, the chains and the tool; for a swap no tool', async () => {
  reported = {
    json: {
      status: 'DONE',
      substatus: 'COMPLETED',
      receiving: { chainId: 1, txHash: hash, amount: '9960000', token: { address: bridge.to.token.address } },
      toAddress: receiver,
    },
  }
  expect(
    await lifi.status({ request: bridge, rawOutMin: 9_950_000n, reference: 'across', txHash: hash }),
  ).toMatchObject({
    state: 'completed',
    received: { rawAmount: 9_960_000n },
  })
  await lifi.status({ request: swap, rawOutMin: 1n, reference: 'uniswap', txHash: hash })
  expect(double.requested).toMatchObject([
    { path: '/status', query: { txHash: hash, fromChain: '8453', toChain: '1', bridge: 'across' } },
    { path: '/status', query: { txHash: hash, fromChain: '1', toChain: '1' } },
  ])
  expect(double.requested[1]?.query.bridge).toBeUndefined()
})

test('an unknown hash is pending, as NOT_FOUND or as 404', async () => {
  reported = { status: 404, json: { message: 'not found', code: 1_003 } }
  expect(await lifi.status({ request: bridge, rawOutMin: 9_950_000n, reference: 'across', txHash: hash })).toEqual({
    state: 'pending',
    partnerStatus: 'NOT_FOUND',
  })
})

test('an undocumented status stays pending', async () => {
  reported = { json: { status: 'MELTED' } }
  expect(
    await lifi.status({ request: bridge, rawOutMin: 9_950_000n, reference: 'across', txHash: hash }),
  ).toMatchObject({ state: 'pending' })
})

test.each(['silence', 'cut', { text: '' }, { json: [] }, { status: 500, json: {} }] as const)(
  '%o is not an answer',
  async (response) => {
    reported = response
    await expect(lifi.quote(bridge)).rejects.toMatchObject({ code: 'partner-unavailable' })
    await expect(lifi.status({ request: bridge, rawOutMin: 1n, reference: 'a', txHash: hash })).rejects.toMatchObject({
      code: 'partner-unavailable',
    })
  },
)
