import { isDeepStrictEqual } from 'node:util'
import { type Address, type Hex, networks, tokenBySymbol } from '@purser/protocol'
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
import { good, rules, swap, verdict } from '../../../test/lifi-verdicts.ts'
import { mutatedSome, sequenceFrom } from '../../../test/mutated-data.ts'
import { exchange, lifiAbi, type Swap, singleSwap, zeros } from '../../../test/partner-calls.ts'
import { endOn, requestFor } from '../../../test/routes.ts'
import { cctpContracts, readDepositForBurn } from './cctp-calls.ts'
import { whyNotSigned } from './guard.ts'
import { readLifiCall } from './lifi-calls.ts'
import { lifiDiamond } from './lifi-contracts.ts'
import vectors from './vectors/partner-calls.json' with { type: 'json' }

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

const calls = 100_000

test(`of ${calls} mutated calls, none is signed that moves money differently or has a non-canonical encoding`, () => {
  const next = sequenceFrom(20_261_123)
  const known = good.map(([name, request, data]) => ({ name, request, data, money: moneyIn(data) }))
  const signed = new Map<string, number>(known.map(({ name }) => [name, 0]))
  for (let round = 0; round < calls; round++) {
    const one = known[next(known.length)]
    if (one === undefined) throw new Error('no call')
    const data = mutatedSome(one.data, next)
    if (data === one.data || verdict(one.request, data) !== undefined) continue
    signed.set(one.name, (signed.get(one.name) ?? 0) + 1)
    const { fixed, least } = moneyIn(data)
    const isSame = isDeepStrictEqual(fixed, one.money.fixed) && least >= rules.rawOutMin
    if (!isSame || encodedAgain(data) !== data.toLowerCase()) throw new Error(`signed: ${data}`)
  }
  // Fields that pay nobody may change; otherwise the test would check nothing.
  for (const [name, count] of signed) expect(count, name).toBeGreaterThan(calls / 1_000)
})

/** A main network with this number at Circle, and its USDC. */
function endOf(domain: number) {
  const network = networks.find((one) => !one.isTestnet && one.cctp?.domain === domain)
  const token = network && tokenBySymbol(network, 'USDC')
  return network && token && { chainId: network.chainId, token: token.address }
}

const burnAbi = parseAbi([
  'function depositForBurn(uint256 amount, uint32 domain, bytes32 recipient, address token, bytes32 caller, uint256 maxFee, uint32 finality)',
])
const approvalAbi = parseAbi(['function approve(address spender, uint256 amount)'])

test('of 20,000 mutated burns, none is signed that burns, pays or costs something else than requested', () => {
  const next = sequenceFrom(7)
  const {
    amount,
    recipient,
    data: burn,
  } = vectors.cctpBurn as typeof vectors.cctpBurn & Record<'data' | 'recipient', Hex>
  const request = {
    ...requestFor(endOn('ethereum', 'USDC'), endOn('base', 'USDC'), BigInt(amount)),
    toAddress: recipient,
  }
  const messenger = cctpContracts({ isTestnet: false }).tokenMessenger
  const rawOutMin = (request.rawAmount * 999n) / 1_000n
  const verdictOf = (data: Hex) =>
    whyNotSigned([{ chainId: 1, to: messenger, value: 0n, data }], request, {
      ...{ targets: [messenger], rawOutMin },
      read: (bytes) => readDepositForBurn(bytes, endOf),
    })
  expect(verdictOf(burn)).toBeUndefined()
  let signed = 0
  for (let round = 0; round < 20_000; round++) {
    const data = mutatedSome(burn, next)
    if (data === burn || verdictOf(data) !== undefined) continue
    signed++
    const { args } = decodeFunctionData({ abi: burnAbi, data })
    const [fee, finality] = [args[5], args[6]]
    const same = [request.rawAmount, 6, pad(recipient), request.from.token.address, zeros, fee, finality] as const
    expect(data.toLowerCase()).toBe(encodeFunctionData({ abi: burnAbi, args: same }))
    expect([fee <= request.rawAmount - rawOutMin, [1_000, 2_000].includes(finality)]).toEqual([true, true])
  }
  expect(signed).toBeGreaterThan(100)
})

test('of 20,000 mutated approvals, none is signed but of the exact amount to a listed contract', () => {
  const next = sequenceFrom(11)
  const { chainId } = swap.from.network
  const approval = encodeFunctionData({ abi: approvalAbi, args: [lifiDiamond, swap.rawAmount] })
  const send = { chainId, to: lifiDiamond, value: 0n, data: singleSwap(swap) }
  const allowed = { ...rules, targets: [lifiDiamond, exchange], read: (data: Hex) => readLifiCall(data, { chainId }) }
  const verdictOf = (data: Hex) =>
    whyNotSigned([{ chainId, to: swap.from.token.address, value: 0n, data }, send], swap, allowed)
  expect(verdictOf(approval)).toBeUndefined()
  const exact = allowed.targets.map((spender) =>
    encodeFunctionData({ abi: approvalAbi, args: [spender, swap.rawAmount] }),
  )
  let signed = 0
  for (let round = 0; round < 20_000; round++) {
    const data = mutatedSome(approval, next)
    if (data === approval || verdictOf(data) !== undefined) continue
    signed++
    expect(exact).toContain(data.toLowerCase())
  }
  // The other listed contract is planted; otherwise the test would check nothing.
  expect(signed).toBeGreaterThan(20)
})
