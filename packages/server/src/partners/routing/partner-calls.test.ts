import { isDeepStrictEqual } from 'node:util'
import { type Address, type Hex, networkByName, sameAddress, selectorOf, zeroAddress } from '@purser/protocol'
import {
  concat,
  decodeAbiParameters,
  decodeFunctionData,
  encodeAbiParameters,
  encodeFunctionData,
  pad,
  parseAbi,
  toFunctionSelector,
} from 'viem'
import { expect, test } from 'vitest'
import {
  aSwap,
  bridging,
  exchange,
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
import { changesOf, type GuardRules, whyNotSigned } from './guard.ts'
import { lifiFunctions, readLifiCall } from './lifi-calls.ts'
import { lifiDiamond, spokePoolOn } from './lifi-contracts.ts'
import type { RouteRequest } from './port.ts'
import { Order, orderIdOf, readOrder } from './relay-order.ts'
import vectors from './vectors/partner-calls.json' with { type: 'json' }

const swap = requestFor(endOn('ethereum', 'USDC'), endOn('ethereum', 'USDT'))
const toCoin = requestFor(endOn('base', 'USDC'), endOn('base', 'native'))
const ofCoin = requestFor(endOn('base', 'native'), endOn('base', 'USDC'), 10n ** 18n)
const bridge = requestFor(endOn('base', 'USDC'), endOn('ethereum', 'USDT'))

const rules: GuardRules & { readonly rawOutMin: bigint } = {
  targets: [lifiDiamond],
  read: (data) => readLifiCall(data, { chainId: 0 }),
  rawOutMin: 9_900_000n,
}

function verdict(request: RouteRequest, data: Hex) {
  const { chainId } = request.from.network
  const value = request.from.token.address === zeroAddress ? request.rawAmount : 0n
  const read = (bytes: Hex) => readLifiCall(bytes, { chainId })
  return whyNotSigned([{ chainId, to: lifiDiamond, value, data }], request, { ...rules, read })
}

/** Valid calls, one per supported function. */
const good: readonly (readonly [string, RouteRequest, Hex])[] = [
  ['single, token to token', swap, singleSwap(swap)],
  ['single, token to coin', toCoin, singleSwap(toCoin)],
  ['single, coin to token', ofCoin, singleSwap(ofCoin)],
  ['multiple, token to token', swap, multipleSwaps(swap)],
  ['multiple, token to coin', toCoin, multipleSwaps(toCoin)],
  ['multiple, coin to token', ofCoin, multipleSwaps(ofCoin, [aSwap(ofCoin, { requiresDeposit: false })])],
  ['Across', bridge, bridging(bridge)],
  ['swap, then Across', bridge, swappingAndBridging(bridge)],
]

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

const other: Address = '0x00000000000000000000000000000000000000aa'
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

/** A seeded pseudorandom sequence (mulberry32). */
function sequenceFrom(seed: number) {
  let state = seed
  return (below: number) => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below
  }
}

const planted: readonly string[] = [
  ...[stranger, receiver, sender, other, lifiDiamond, exchange, zeroAddress].map((one) =>
    pad(one).slice(2).toLowerCase(),
  ),
  ...[0n, 1n, 32n, 64n, 96n, 192n, 9_899_999n, 10_000_000n, 10_000_001n, 2n ** 255n, 1n << 160n].map((one) =>
    one.toString(16).padStart(64, '0'),
  ),
]

/** One change of a call: of a nibble, of a word, of the length, or of the order. */
function mutated(data: Hex, next: (below: number) => number): Hex {
  const body = data.slice(10)
  const count = body.length / 64
  const at = next(count) * 64
  const word = planted[next(planted.length)] ?? ''
  const from = next(count) * 64
  switch (next(9)) {
    case 0: {
      const nibble = next(data.length - 2) + 2
      return `${data.slice(0, nibble)}${next(16).toString(16)}${data.slice(nibble + 1)}` as Hex
    }
    case 1:
      return `${data.slice(0, 10)}${body.slice(0, at)}${word}${body.slice(at + 64)}` as Hex
    case 2:
      return `${data.slice(0, 10)}${body.slice(0, at)}${word}${body.slice(at)}` as Hex
    case 3:
      return `${data.slice(0, 10)}${body.slice(0, at)}${body.slice(at + 64)}` as Hex
    case 4:
      return `${data.slice(0, 10)}${body.slice(0, at)}${body.slice(from, from + 64)}${body.slice(at + 64)}` as Hex
    case 5:
      return `${data}${word.slice(0, 2 * next(33))}` as Hex
    case 6:
      return data.slice(0, data.length - 2 * (1 + next(64))) as Hex
    case 7: {
      const value =
        (BigInt(`0x${body.slice(at, at + 64)}`) + BigInt([1, 31, 32, 64, -1, -32][next(6)] ?? 1)) & (2n ** 256n - 1n)
      return `${data.slice(0, 10)}${body.slice(0, at)}${value.toString(16).padStart(64, '0')}${body.slice(at + 64)}` as Hex
    }
    default:
      return `${Object.values(vectors.selectors)[next(8)]}${body}` as Hex
  }
}

/** The parts of a call that move money, decoded by viem, independently of the tested code. Amounts that may only grow are omitted. */
function moneyIn(data: Hex): { readonly fixed: unknown; readonly least: bigint } {
  const { functionName, args } = decodeFunctionData({ abi: lifiAbi, data })
  const taken = (swaps: readonly Swap[]) => [
    swaps[0]?.sendingAssetId,
    swaps[0]?.fromAmount,
    swaps.at(-1)?.receivingAssetId,
    swaps.slice(1).map(({ requiresDeposit }) => requiresDeposit),
  ]
  if (functionName.startsWith('swapTokens')) {
    const [, , , to, least, given] = args as unknown as [Hex, string, string, Address, bigint, Swap | Swap[]]
    return { fixed: [functionName.includes('Native'), to, taken([given].flat())], least }
  }
  const [data0, second, third] = args as readonly unknown[] as [Record<string, unknown>, object, object | undefined]
  const across = (third ?? second) as Record<string, unknown>
  const swaps = third === undefined ? [] : (second as Swap[])
  const { transactionId: _, bridge: __, integrator: ___, referrer: ____, minAmount, ...outer } = data0
  const { receiverAddress, refundAddress, sendingAssetId, receivingAssetId, message } = across
  const fixed = [outer, receiverAddress, refundAddress, sendingAssetId, receivingAssetId, message, taken(swaps)]
  const least =
    swaps.length === 0
      ? BigInt(String(across.outputAmount))
      : (BigInt(String(minAmount)) * BigInt(String(across.outputAmountMultiplier))) / 10n ** 18n
  return { fixed: swaps.length === 0 ? [fixed, minAmount] : fixed, least }
}

/** Decodes and re-encodes with the standard codec; strings as bytes, since not all bytes are valid text. */
function encodedAgain(data: Hex): Hex {
  const selector = data.slice(0, 10).toLowerCase() as Hex
  const item = lifiAbi.find((one) => toFunctionSelector(one) === selector)
  const inputs = JSON.parse(JSON.stringify(item?.inputs).replaceAll('"string"', '"bytes"'))
  return concat([selector, encodeAbiParameters(inputs, decodeAbiParameters(inputs, `0x${data.slice(10)}`))])
}

test('of 100,000 mutated calls, none is signed that moves money differently or has a non-canonical encoding', () => {
  const next = sequenceFrom(20_261_123)
  const known = good.map(([, request, data]) => ({ request, data, money: moneyIn(data) }))
  let signed = 0
  for (let round = 0; round < 100_000; round++) {
    const one = known[next(known.length)]
    if (one === undefined) throw new Error('no call')
    let data = one.data
    for (let change = next(3); change >= 0; change--) data = mutated(data, next)
    if (data === one.data || verdict(one.request, data) !== undefined) continue
    signed++
    const { fixed, least } = moneyIn(data)
    const isSame = isDeepStrictEqual(fixed, one.money.fixed) && least >= rules.rawOutMin
    if (!isSame || encodedAgain(data) !== data.toLowerCase()) throw new Error(`signed: ${data}`)
  }
  // Fields that pay nobody may change; otherwise the test would check nothing.
  expect(signed).toBeGreaterThan(1_000)
})

test('of 20,000 mutated burns and deposits, none is decoded as the requested one', () => {
  const next = sequenceFrom(7)
  const network = networkByName('ethereum')
  if (network === undefined) throw new Error('no Ethereum')
  const end = { chainId: 8_453, token: endOn('base', 'USDC').token.address }
  const burn = vectors.cctpBurn.data as Hex
  const whole = readDepositForBurn(burn, () => end)
  for (let round = 0; round < 20_000; round++) {
    const data = mutated(burn, next)
    const meaning = readDepositForBurn(data, (domain) => (domain === 6 ? end : undefined))
    if (data === burn || meaning === undefined) continue
    const { rawMin, ...arrives } = meaning.arrives
    const isSame =
      sameAddress(meaning.spends.token, whole?.spends.token ?? zeroAddress) &&
      meaning.spends.rawAmount === whole?.spends.rawAmount &&
      sameAddress(arrives.recipient, whole.arrives.recipient)
    // Only Circle's maximum fee and finality may differ; the guard compares the minimum that arrives.
    if (isSame) expect([data.slice(0, 330), data.length]).toEqual([burn.slice(0, 330), burn.length])
  }
})
