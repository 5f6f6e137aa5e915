import type { Address, Hex } from '@purser/protocol'
import { encodeFunctionData, erc20Abi, parseAbi } from 'viem'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { relayOrder } from '../../../test/partner-calls.ts'
import { aPartner, type PartnerDouble, type PartnerResponse } from '../../../test/partner-double.ts'
import { endOn, receiver, requestFor, sender, stranger } from '../../../test/routes.ts'
import { instantOf } from '../../platform/clock.ts'
import { createOutbound, type Outbound } from '../../platform/outbound.ts'
import type { RouteStatus, RoutingPartner } from './port.ts'
import { createRelay, relayDepository } from './relay.ts'
import vectors from './vectors/partner-calls.json' with { type: 'json' }

let outbound: Outbound
let double: PartnerDouble
let relay: RoutingPartner
let reported: PartnerResponse

beforeEach(async () => {
  outbound = createOutbound()
  double = await aPartner(() => reported)
  const clock = { now: () => instantOf(1_790_000_000_000) }
  relay = createRelay({ outbound, clock }, { baseUrl: double.url, apiKey: 'rk', timeoutMs: 1_000 })
})
afterEach(async () => {
  await outbound.close()
  await double.stop()
})

const request = requestFor(endOn('base', 'USDC'), endOn('tempo', 'USDC_E'))
const order = relayOrder(request, { least: 9_903_147n })
const { id } = order
/** The request id of Relay's API, which differs from the order id. */
const requestId = `0x${'cd'.repeat(32)}` as const
const depositAbi = parseAbi(['function depositErc20(address depositor, address token, uint256 amount, bytes32 id)'])

function deposit(changes: { readonly depositor?: Address; readonly token?: Address; readonly amount?: bigint } = {}) {
  const { depositor = sender, token = request.from.token.address, amount = 10_000_000n } = changes
  return encodeFunctionData({ abi: depositAbi, functionName: 'depositErc20', args: [depositor, token, amount, id] })
}
const approve = (spender: Address, amount: bigint) =>
  encodeFunctionData({ abi: erc20Abi, functionName: 'approve', args: [spender, amount] })

interface Changes {
  readonly approval?: object
  readonly deposit?: object
  readonly step?: object
  readonly details?: object
  readonly out?: object
  readonly order?: unknown
}

/** In the shape of `POST /quote/v2`. */
function quoteWith(changes: Changes = {}): PartnerResponse {
  const at = { from: sender, chainId: 8_453, value: '0', gas: '60000', maxFeePerGas: '1', maxPriorityFeePerGas: '1' }
  const approval = { ...at, to: request.from.token.address, data: approve(relayDepository, 10_000_000n) }
  const send = { ...at, to: relayDepository, data: deposit() }
  const check = { endpoint: `/intents/status/v3?requestId=${requestId}`, method: 'GET' }
  const currency = (end: typeof request.from) => ({ chainId: end.network.chainId, ...end.token })
  return {
    json: {
      steps: [
        {
          id: 'approve',
          action: 'Confirm transaction in your wallet',
          kind: 'transaction',
          requestId,
          items: [{ status: 'incomplete', data: { ...approval, ...changes.approval } }],
        },
        {
          id: 'deposit',
          kind: 'transaction',
          requestId,
          items: [{ status: 'incomplete', data: { ...send, ...changes.deposit }, check }],
          ...changes.step,
        },
      ],
      protocol: { v2: { orderId: id, orderData: 'order' in changes ? changes.order : order.data } },
      fees: { relayer: { currency: { symbol: 'USDC' }, amount: '47089', amountFormatted: '0.047089' } },
      details: {
        sender,
        recipient: receiver,
        timeEstimate: 2,
        currencyIn: { currency: currency(request.from), amount: '10000000' },
        currencyOut: {
          currency: currency(request.to),
          amount: '9952911',
          minimumAmount: '9903147',
          ...changes.out,
        },
        ...changes.details,
      },
    },
  }
}

test('a quote has an exact approval, a deposit in our name, and the minimum that arrives', async () => {
  reported = quoteWith()
  const quoted = await relay.quote(request)
  if (!quoted.ok) throw new Error(quoted.words)
  expect(quoted.quote).toMatchObject({
    partner: 'relay',
    reference: requestId,
    rawOut: 9_952_911n,
    rawOutMin: 9_903_147n,
    etaSeconds: 2,
    fees: [{ name: 'Relay', symbol: 'USDC', rawAmount: 47_089n }],
    expiresAt: instantOf(1_790_000_060_000),
  })
  expect(quoted.quote.calls).toEqual([
    { chainId: 8_453, to: request.from.token.address, value: 0n, data: approve(relayDepository, 10_000_000n) },
    { chainId: 8_453, to: relayDepository, value: 0n, data: deposit() },
  ])
  expect(double.requested).toMatchObject([
    {
      method: 'POST',
      path: '/quote/v2',
      headers: { 'x-api-key': 'rk' },
      body: {
        user: sender,
        recipient: receiver,
        refundTo: sender,
        originChainId: 8_453,
        destinationChainId: 4_217,
        originCurrency: request.from.token.address,
        destinationCurrency: request.to.token.address,
        amount: '10000000',
        tradeType: 'EXACT_INPUT',
        slippageTolerance: '50',
        usePermit: false,
        explicitDeposit: true,
        includeProtocolData: true,
      },
    },
  ])
})

test('a completed approval is not requested again', async () => {
  const done = quoteWith()
  if (typeof done === 'string' || !('json' in done)) throw new Error('no quote')
  const json = structuredClone(done.json) as { steps: { items: unknown[] }[] }
  json.steps[0]?.items.splice(0)
  reported = { json }
  expect(await relay.quote(request)).toMatchObject({ ok: true, quote: { calls: [{ to: relayDepository }] } })
})

test('native coin is deposited with exactly the amount as call value, in our name', async () => {
  const coin = requestFor(endOn('base', 'native'), endOn('tempo', 'USDC_E'))
  const nativeAbi = parseAbi(['function depositNative(address depositor, bytes32 id)'])
  const ofCoin = relayOrder(coin, { least: 9_903_147n })
  const native = (depositor: Address) =>
    encodeFunctionData({ abi: nativeAbi, functionName: 'depositNative', args: [depositor, ofCoin.id] })
  const quoted = (value: string, depositor = sender) => {
    const response = quoteWith({ deposit: { value, data: native(depositor) }, order: ofCoin.data })
    if (typeof response === 'string' || !('json' in response)) throw new Error('no quote')
    const json = structuredClone(response.json) as { steps: unknown[]; details: { currencyIn: { currency: object } } }
    json.steps.shift()
    json.details.currencyIn.currency = { chainId: 8_453, address: coin.from.token.address }
    reported = { json }
    return relay.quote(coin)
  }
  expect(await quoted('10000000')).toMatchObject({ ok: true, quote: { calls: [{ value: 10_000_000n }] } })
  expect(await quoted('10000001')).toMatchObject({ words: 'value-differs' })
  expect(await quoted('10000000', stranger)).toMatchObject({ reason: 'no-route' })
  reported = quoteWith({ deposit: { data: native(sender) } })
  expect(await relay.quote(request)).toMatchObject({ reason: 'no-route' })
})

test.each<readonly [string, Changes, string]>([
  ['more approved than is sent', { approval: { data: approve(relayDepository, 10_000_001n) } }, 'approval-not-exact'],
  ['another account approved', { approval: { data: approve(stranger, 10_000_000n) } }, 'approval-to-other-spender'],
  ['the call to another account', { deposit: { to: stranger } }, 'target-not-listed'],
  ['another chain', { deposit: { chainId: 1 } }, 'wrong-chain'],
  ['coin along with it', { deposit: { value: '1' } }, 'value-differs'],
  ['another recipient', { details: { recipient: stranger } }, 'recipient-differs'],
  ['another token to arrive', { out: { currency: { chainId: 4_217, address: stranger } } }, 'destination-differs'],
  [
    'another chain to arrive on',
    { out: { currency: { chainId: 1, address: request.to.token.address } } },
    'destination-differs',
  ],
  ['less at the least than was allowed', { out: { minimumAmount: '9903145' } }, 'minimum-too-low'],
])('%s is refused, with its reason', async (_, changes, words) => {
  reported = quoteWith(changes)
  expect(await relay.quote(request)).toEqual({ ok: false, reason: 'unsafe', words })
})

const ordered = (changes: Parameters<typeof relayOrder>[1]) => {
  const made = relayOrder(request, { least: 9_903_147n, ...changes })
  const args = [sender, request.from.token.address, 10_000_000n, made.id] as const
  return {
    order: made.data,
    deposit: { data: encodeFunctionData({ abi: depositAbi, functionName: 'depositErc20', args }) },
  }
}

test.each<readonly [string, Changes]>([
  ['another call', { deposit: { data: '0xdeadbeef' } }],
  ['a deposit in another’s name', { deposit: { data: deposit({ depositor: stranger }) } }],
  ['a deposit of more', { deposit: { data: deposit({ amount: 10_000_001n }) } }],
  ['a deposit of another token', { deposit: { data: deposit({ token: stranger }) } }],
  ['a deposit with a tail', { deposit: { data: `${deposit()}00` } }],
  ['no order', { order: undefined }],
  ['an order that is not the one of the deposit', { order: relayOrder(request, { least: 9_903_148n }).data }],
  ['an order of an unpublished version', { order: { ...order.data, version: 'v9' } }],
  ['an order of a solver that is no account', { order: { ...order.data, solver: '0x' } }],
  ['an order with a number of more than 256 bits', { order: { ...order.data, salt: '9'.repeat(78) } }],
  ['an order with half a byte', { order: { ...order.data, solver: `${order.data.solver}0` } }],
  ['a refund to another', ordered({ refundTo: stranger })],
])('%s is no route, because it is not supported', async (_, changes) => {
  reported = quoteWith(changes)
  expect(await relay.quote(request)).toMatchObject({ ok: false, reason: 'no-route', undecodedCall: expect.any(String) })
})

test.each<readonly [string, Changes, string]>([
  ['pays another', ordered({ recipient: stranger }), 'recipient-differs'],
  ['pays in another token', ordered({ currency: stranger }), 'token-differs'],
  ['pays less than the quote says', ordered({ least: 9_903_146n }), 'minimum-too-low'],
])('a deposit whose order %s is refused, whatever the quote states', async (_, changes, words) => {
  reported = quoteWith(changes)
  expect(await relay.quote(request)).toEqual({ ok: false, reason: 'unsafe', words })
})

test.each([{ kind: 'signature' }, { id: 'authorize' }, { items: [{ status: 'incomplete', data: { to: 'nowhere' } }] }])(
  'a step that is %o is refused',
  async (step) => {
    reported = quoteWith({ step })
    expect(await relay.quote(request)).toMatchObject({ ok: false, reason: 'unsafe' })
  },
)

test.each([
  ['NO_SWAP_ROUTES_FOUND', 'no-route'],
  ['AMOUNT_TOO_LOW', 'amount-too-low'],
  ['INSUFFICIENT_LIQUIDITY', 'amount-too-high'],
])('Relay’s error %s is the reason %s', async (errorCode, reason) => {
  reported = { status: 400, json: { errorCode, message: 'no' } }
  expect(await relay.quote(request)).toMatchObject({ ok: false, reason })
})

const hash = `0x${'ef'.repeat(32)}` as const
const refunded = { state: 'failed', refund: 'done', refundTxHash: hash }

test.each<readonly [string, Partial<RouteStatus> & object]>([
  ['waiting', { state: 'pending' }],
  ['depositing', { state: 'pending' }],
  ['pending', { state: 'pending' }],
  ['submitted', { state: 'pending' }],
  ['delayed', { state: 'pending' }],
  ['success', { state: 'completed', destinationTxHash: hash }],
  ['refund', refunded as Partial<RouteStatus> & object],
  ['refunded', refunded as Partial<RouteStatus> & object],
  ['failure', { state: 'failed', refund: 'pending' } as Partial<RouteStatus> & object],
])('%s is %o', async (status, expected) => {
  reported = {
    json: { status, inTxHashes: [], txHashes: [hash], updatedAt: 1, originChainId: 8_453, destinationChainId: 4_217 },
  }
  const seen = await relay.status({ request, rawOutMin: 1n, reference: requestId, txHash: hash })
  expect(seen).toMatchObject({ ...expected, partnerStatus: status })
  expect('isUnknown' in seen).toBe(false)
  expect(double.requested).toMatchObject([{ method: 'GET', path: '/intents/status/v3', query: { requestId } }])
})

test('an undocumented status stays pending', async () => {
  reported = { json: { status: 'quantum', txHashes: [hash] } }
  expect(await relay.status({ request, rawOutMin: 1n, reference: requestId, txHash: hash })).toEqual({
    state: 'pending',
    partnerStatus: 'quantum',
    isUnknown: true,
  })
})

test.each(['silence', 'cut', { text: '' }, { json: [] }, { status: 500, json: {} }] as const)(
  '%o is not an answer',
  async (response) => {
    reported = response
    await expect(relay.quote(request)).rejects.toMatchObject({ code: 'partner-unavailable' })
    await expect(relay.status({ request, rawOutMin: 1n, reference: requestId, txHash: hash })).rejects.toMatchObject({
      code: 'partner-unavailable',
    })
  },
)

test.each([
  ['of a token', endOn('base', 'USDC'), vectors.relayDepositCalls.erc20],
  ['of coin', endOn('base', 'native'), vectors.relayDepositCalls.native],
] as const)(
  'a deposit %s, as Base recorded it, is understood, and no other',
  (_, from, { depositor, rawAmount, data }) => {
    const sent = BigInt(rawAmount)
    const own = { ...requestFor(from, request.to, sent), fromAddress: depositor as Address }
    const isCoin = from.token.symbol === 'ETH'
    const call = { chainId: 8_453, to: relayDepository, value: isCoin ? sent : 0n, data: data as Hex }
    expect(relay.expects(own, call)).toContainEqual({
      ...{ token: from.token.address.toLowerCase(), account: relayDepository, least: sent, most: sent },
    })
    const others = [
      relay.expects({ ...own, fromAddress: stranger }, call),
      relay.expects(own, { ...call, data: `${call.data}00` }),
      relay.expects(own, { ...call, data: `0x5a1ee3ac${data.slice(10)}` }),
      relay.expects({ ...own, rawAmount: sent + 1n }, isCoin ? { ...call, value: sent + 1n, data: '0x' } : call),
    ]
    expect(others).toEqual(others.map(() => undefined))
  },
)
