import { isDeepStrictEqual } from 'node:util'
import { type Address, type Hex, networkByName, sameAddress, zeroAddress } from '@purser/protocol'
import { concat, decodeAbiParameters, decodeFunctionData, encodeAbiParameters, pad, toFunctionSelector } from 'viem'
import { expect, test } from 'vitest'
import { good, other, rules, verdict } from '../../../test/lifi-verdicts.ts'
import { exchange, lifiAbi, type Swap } from '../../../test/partner-calls.ts'
import { endOn, receiver, sender, stranger } from '../../../test/routes.ts'
import { readDepositForBurn } from './cctp-calls.ts'
import { lifiDiamond } from './lifi-contracts.ts'
import vectors from './vectors/partner-calls.json' with { type: 'json' }

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
