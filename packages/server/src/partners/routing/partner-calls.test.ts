import { type Hex, selectorOf, zeroAddress } from '@purser/protocol'
import { concat, decodeFunctionData, encodeFunctionData, pad, parseAbi } from 'viem'
import { expect, test } from 'vitest'
import { bridge, good, other, swap, verdict } from '../../../test/lifi-verdicts.ts'
import {
  aSwap,
  bridging,
  lifiAbi,
  multipleSwaps,
  relayOrder,
  type Swap,
  singleSwap,
  swappingAndBridging,
  swapsWithFee,
  zeros,
} from '../../../test/partner-calls.ts'
import { endOn, receiver, requestFor, sender, stranger } from '../../../test/routes.ts'
import { readDepositForBurn } from './cctp-calls.ts'
import { changesOf } from './guard.ts'
import { lifiFunctions, readLifiCall } from './lifi-calls.ts'
import { lifiDiamond, spokePoolOn } from './lifi-contracts.ts'
import type { RouteRequest } from './port.ts'
import { Order, orderIdOf, readOrder } from './relay-order.ts'
import vectors from './vectors/partner-calls.json' with { type: 'json' }

test('the supported LI.FI functions are the eight published ones with their published selectors', () => {
  expect(lifiFunctions.map(({ selector }) => selector).sort()).toEqual(Object.values(vectors.selectors).sort())
  const named = good.map(([, , data]) => decodeFunctionData({ abi: lifiAbi, data }).functionName)
  expect(named.sort()).toEqual(Object.keys(vectors.selectors).sort())
})

test.each(good)('%s is decoded completely and signed', (_, request, data) => {
  expect(verdict(request, data)).toBeUndefined()
})

test('a call from LI.FI’s API is decoded to its documented fields', () => {
  const { head, receiver: to, callDataBytes, ...facts } = vectors.lifiSwapHead
  const call = `90411a32${'00'.repeat(callDataBytes - 4)}`
  const padding = '00'.repeat((32 - (callDataBytes % 32)) % 32)
  const meaning = readLifiCall(`${head}${call}${padding}` as Hex, { chainId: 100 })
  expect(meaning).toEqual({
    spends: { token: facts.sendingAssetId, rawAmount: BigInt(facts.fromAmount) },
    arrives: { chainId: 100, token: facts.receivingAssetId, recipient: to, rawMin: BigInt(facts.minAmountOut) },
    changes: [{ token: facts.receivingAssetId, account: to, least: BigInt(facts.minAmountOut) }],
  })
})

test('a call must change the sender’s balance and the recipient’s or Across’', () => {
  const on = (request: RouteRequest, data: Hex) => {
    const { chainId } = request.from.network
    const read = (bytes: Hex) => readLifiCall(bytes, { chainId })
    return changesOf({ chainId, to: lifiDiamond, value: 0n, data }, request, { targets: [lifiDiamond], read })
  }
  const usdt = swap.to.token.address.toLowerCase()
  expect(on(swap, singleSwap(swap))).toEqual([
    { token: swap.from.token.address, account: sender, least: -10_000_000n, most: 0n },
    { token: usdt, account: receiver.toLowerCase(), least: 9_950_000n },
  ])
  const usdc = bridge.from.token.address
  expect(on(bridge, bridging(bridge))).toEqual([
    { token: usdc, account: sender, least: -10_000_000n, most: -10_000_000n },
    { token: usdc.toLowerCase(), account: spokePoolOn(8_453), least: 10_000_000n, most: 10_000_000n },
  ])
})

const asBytes = (data: Hex): Hex => pad(data)

/** Functions of other LI.FI facets that a hostile answer could use. */
const hostileAbi = parseAbi([
  'struct Bridge { bytes32 transactionId; string bridge; string integrator; address referrer; address sendingAssetId; address receiver; uint256 minAmount; uint256 destinationChainId; bool hasSourceSwaps; bool hasDestinationCall; }',
  'struct DeBridge { bytes receivingAssetId; bytes receiver; bytes orderAuthorityDst; }',
  'function startBridgeTokensViaCBridgeERC20Min(bytes32 transactionId, address receiver, uint64 destinationChainId, address sendingAssetId, uint256 amount, uint64 nonce, uint32 maxSlippage)',
  'function startBridgeTokensViaDeBridgeDln(Bridge bridge, DeBridge debridge) payable',
])
const bridgeStruct = {
  ...{ transactionId: zeros, bridge: 'x', integrator: 'lifi-api', referrer: zeroAddress },
  ...{ sendingAssetId: bridge.from.token.address, receiver, minAmount: 10_000_000n, destinationChainId: 1n },
  ...{ hasSourceSwaps: false, hasDestinationCall: false },
} as const

const hostile: readonly (readonly [string, RouteRequest, Hex, string])[] = [
  [
    'a packed facet with a decoy of BridgeData behind its arguments',
    bridge,
    concat([
      encodeFunctionData({
        abi: hostileAbi,
        functionName: 'startBridgeTokensViaCBridgeERC20Min',
        args: [pad('0xe0'), stranger, 1n, bridge.from.token.address, 10_000_000n, 1n, 5_000],
      }),
      `0x${bridging(bridge).slice(10)}`,
    ]),
    'call-not-understood',
  ],
  [
    'a facet that pays its own receiver',
    bridge,
    encodeFunctionData({
      abi: hostileAbi,
      functionName: 'startBridgeTokensViaDeBridgeDln',
      args: [
        bridgeStruct,
        { receivingAssetId: bridge.to.token.address, receiver: stranger, orderAuthorityDst: stranger },
      ],
    }),
    'call-not-understood',
  ],
  ['a swap into a worthless token', swap, singleSwap(swap, aSwap(swap, { receivingAssetId: other })), 'token-differs'],
  [
    'swaps whose last is into a worthless token',
    swap,
    multipleSwaps(swap, swapsWithFee(swap, { receivingAssetId: other })),
    'token-differs',
  ],
  ['a receiver that is another', swap, singleSwap(swap, undefined, { to: stranger }), 'recipient-differs'],
  ['a minimum below the quote', swap, singleSwap(swap, undefined, { least: 9_899_999n }), 'minimum-too-low'],
  ['more taken than was given', swap, singleSwap(swap, aSwap(swap, { fromAmount: 10_000_001n })), 'amount-differs'],
  ['another token taken', swap, singleSwap(swap, aSwap(swap, { sendingAssetId: other })), 'amount-differs'],
  [
    'a second swap that takes from the sender too',
    swap,
    multipleSwaps(swap, swapsWithFee(swap, { requiresDeposit: true })),
    'call-not-understood',
  ],
  [
    'swaps that do not follow each other',
    swap,
    multipleSwaps(swap, swapsWithFee(swap, { sendingAssetId: other })),
    'call-not-understood',
  ],
  ['no swaps', swap, multipleSwaps(swap, []), 'call-not-understood'],
  ['nine swaps', swap, multipleSwaps(swap, nine()), 'call-not-understood'],
  ['a byte behind the last argument', swap, `${singleSwap(swap)}00`, 'call-not-understood'],
  ['a word behind the last argument', swap, `${singleSwap(swap)}${'00'.repeat(32)}`, 'call-not-understood'],
  ['the selector alone', swap, vectors.selectors.swapTokensSingleV3ERC20ToERC20 as Hex, 'call-not-understood'],
  [
    'a bridge to another chain',
    bridge,
    bridging(bridge, { bridge: { destinationChainId: 137n } }),
    'destination-differs',
  ],
  [
    'a bridge whose own struct pays another',
    bridge,
    bridging(bridge, { across: { receiverAddress: pad(stranger) } }),
    'call-not-understood',
  ],
  [
    'a bridge that pays another in both structs',
    bridge,
    bridging(bridge, { bridge: { receiver: stranger }, across: { receiverAddress: pad(stranger) } }),
    'recipient-differs',
  ],
  ['a refund to another', bridge, bridging(bridge, { across: { refundAddress: pad(stranger) } }), 'refund-differs'],
  ['another token over there', bridge, bridging(bridge, { across: { receivingAssetId: pad(other) } }), 'token-differs'],
  [
    'another token given to Across than is taken',
    bridge,
    bridging(bridge, { across: { sendingAssetId: pad(other) } }),
    'call-not-understood',
  ],
  [
    'less over there than was quoted',
    bridge,
    bridging(bridge, { across: { outputAmount: 9_899_999n } }),
    'minimum-too-low',
  ],
  [
    'a multiplier that leaves less than was quoted',
    bridge,
    swappingAndBridging(bridge, { across: { outputAmountMultiplier: 9n * 10n ** 17n } }),
    'minimum-too-low',
  ],
  [
    'a message for over there',
    bridge,
    bridging(bridge, { across: { message: '0x1234' }, bridge: { hasDestinationCall: true } }),
    'call-not-understood',
  ],
  [
    'a receiver with something in the bytes before it',
    bridge,
    bridging(bridge, { across: { receiverAddress: `0x01${asBytes(receiver).slice(4)}` } }),
    'call-not-understood',
  ],
  [
    'a flag of swaps that are not there',
    bridge,
    bridging(bridge, { bridge: { hasSourceSwaps: true } }),
    'call-not-understood',
  ],
  [
    'swaps that end in another token than is bridged',
    bridge,
    swappingAndBridging(bridge, { swaps: [aSwap(bridge, { receivingAssetId: other })] }),
    'call-not-understood',
  ],
  ['a swap for a bridge', bridge, singleSwap(bridge), 'destination-differs'],
  ['a bridge to where it begins', swap, bridging(swap), 'call-not-understood'],
]

function nine(): readonly Swap[] {
  const same = { receivingAssetId: swap.from.token.address, requiresDeposit: false }
  return [
    aSwap(swap, { ...same, requiresDeposit: true }),
    ...Array.from({ length: 7 }, () => aSwap(swap, same)),
    aSwap(swap, { requiresDeposit: false }),
  ]
}

test.each(hostile)('%s is not signed', (_, request, data, reason) => {
  expect(verdict(request, data)).toBe(reason)
})

test('Circle’s burn of a confirmed transaction is decoded correctly', () => {
  const { data, amount, domain, recipient } = vectors.cctpBurn
  const end = { chainId: 8_453, token: endOn('base', 'USDC').token.address }
  const token = endOn('ethereum', 'USDC').token.address.toLowerCase()
  const endOf = (named: number) => (named === domain ? end : undefined)
  expect(readDepositForBurn(data as Hex, endOf)).toEqual({
    spends: { token, rawAmount: BigInt(amount) },
    arrives: { ...end, recipient, rawMin: BigInt(amount) },
    changes: [{ token, account: 'supply', least: -BigInt(amount), most: -BigInt(amount) }],
  })
  expect(readDepositForBurn(`${data}00` as Hex, endOf)).toBeUndefined()
  expect(readDepositForBurn(data.replace('0x8e0250ee', '0x779b432d') as Hex, endOf)).toBeUndefined()
  const onlyOne = `${data.slice(0, 10 + 4 * 64)}${pad(stranger).slice(2)}${data.slice(10 + 5 * 64)}`
  expect(readDepositForBurn(onlyOne as Hex, endOf), 'only another account could deliver it').toBeUndefined()
})

test('a Relay order has the id that Relay’s software computes, and any change gives another id', () => {
  const { id, order } = vectors.relayOrder
  expect(orderIdOf(Order.parse(order))).toBe(id)
  for (const [signature, selector] of Object.entries(vectors.relayDeposits))
    expect(selectorOf(signature)).toBe(selector)
  const request = requestFor(endOn('base', 'USDC'), endOn('ethereum', 'USDT'))
  const ours = relayOrder(request)
  expect(orderIdOf(Order.parse(ours.data))).toBe(ours.id)
  expect(relayOrder(request, { least: 1n }).id).not.toBe(ours.id)
})

test.each<readonly [string, Parameters<typeof relayOrder>[1]]>([
  ['a call over there', { calls: ['0x1234'] }],
  ['a refund to another', { refundTo: stranger }],
  ['a refund in a worthless token', { refundIn: other }],
  ['a payment on another chain', { toChain: 'solana' }],
])('an order with %s is not supported', (_, changes) => {
  const request = requestFor(endOn('base', 'USDC'), endOn('ethereum', 'USDT'))
  expect(readOrder(Order.parse(relayOrder(request, changes).data), request)).toBeUndefined()
})

test('an order with two inputs or two payments is not supported', () => {
  const order = Order.parse(relayOrder(bridge).data)
  const { inputs, output } = order
  expect(readOrder(order, bridge)).toBeDefined()
  expect(readOrder({ ...order, inputs: [...inputs, ...inputs] }, bridge)).toBeUndefined()
  const payments = [...output.payments, ...output.payments]
  expect(readOrder({ ...order, output: { ...output, payments } }, bridge)).toBeUndefined()
})
