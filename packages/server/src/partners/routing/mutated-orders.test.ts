import { type Hex, sameAddress } from '@purser/protocol'
import { encodeFunctionData, erc20Abi, parseAbi } from 'viem'
import { expect, test } from 'vitest'
import { mutatedSome, sequenceFrom } from '../../../test/mutated-data.ts'
import { type RelayOrder, relayOrder, relayOrderId } from '../../../test/partner-calls.ts'
import { endOn, receiver, requestFor, sender, stranger } from '../../../test/routes.ts'
import { instantOf } from '../../platform/clock.ts'
import type { Outbound } from '../../platform/outbound.ts'
import type { RouteRequest } from './port.ts'
import { createRelay, relayDepository } from './relay.ts'

const abi = parseAbi([
  'function depositErc20(address depositor, address token, uint256 amount, bytes32 id)',
  'function depositNative(address depositor, bytes32 id)',
])
const rawOutMin = 9_903_147n
const ofToken = requestFor(endOn('base', 'USDC'), endOn('tempo', 'USDC_E'))
const ofCoin = requestFor(endOn('base', 'native'), endOn('tempo', 'USDC_E'))

/** A deposit and the order that Relay states for it. */
interface Stated {
  readonly deposit: Hex
  readonly order: unknown
}

let quote: unknown
const outbound = { exchange: async () => ({ status: 200, json: quote }) } as unknown as Outbound
const clock = { now: () => instantOf(1_790_000_000_000) }
const relay = createRelay({ outbound, clock }, { baseUrl: 'http://relay.test', apiKey: 'rk' })

/** Whether the calls of a quote are signed. */
async function isSigned(request: RouteRequest, { deposit, order }: Stated): Promise<boolean> {
  quote = quoteOf(request, { deposit, order })
  return (await relay.quote(request)).ok
}

/** In the shape of `POST /quote/v2`, honest apart from the deposit and the order. */
function quoteOf({ from, to, rawAmount }: RouteRequest, { deposit, order }: Stated) {
  const isCoin = from === ofCoin.from
  const item = (call: object) => [
    { status: 'incomplete', data: { chainId: from.network.chainId, value: '0', ...call } },
  ]
  const approval = encodeFunctionData({ abi: erc20Abi, functionName: 'approve', args: [relayDepository, rawAmount] })
  const approve = { id: 'approve', kind: 'transaction', items: item({ to: from.token.address, data: approval }) }
  const value = (isCoin ? rawAmount : 0n).toString()
  const send = {
    ...{ id: 'deposit', kind: 'transaction', requestId: 'r' },
    items: item({ to: relayDepository, data: deposit, value }),
  }
  const currency = ({ network, token }: RouteRequest['from']) => ({ chainId: network.chainId, address: token.address })
  return {
    steps: isCoin ? [send] : [approve, send],
    protocol: { v2: { orderData: order } },
    fees: {},
    details: {
      recipient: receiver,
      currencyIn: { currency: currency(from), amount: rawAmount.toString() },
      currencyOut: { currency: currency(to), amount: '9952911', minimumAmount: rawOutMin.toString() },
    },
  }
}

function depositFor({ from, rawAmount }: RouteRequest, id: Hex): Hex {
  return from === ofCoin.from
    ? encodeFunctionData({ abi, functionName: 'depositNative', args: [sender, id] })
    : encodeFunctionData({ abi, functionName: 'depositErc20', args: [sender, from.token.address, rawAmount, id] })
}

function honest(request: RouteRequest) {
  const { data: order, id } = relayOrder(request, { least: rawOutMin })
  return { request, order, id, deposit: depositFor(request, id) }
}

/** `MUTATED_ORDERS=10000` makes a long one. */
const orders = Number(process.env.MUTATED_ORDERS ?? 2_500)

test(`of ${orders} mutated deposits at Relay, only the one of the order, in our name, is signed`, async () => {
  const next = sequenceFrom(13)
  for (const { request, order, deposit } of [honest(ofToken), honest(ofCoin)]) {
    expect(await isSigned(request, { deposit, order })).toBe(true)
    let unchanged = 0
    for (let round = 0; round < orders / 2; round++) {
      const data = mutatedSome(deposit, next)
      const isSame = data.toLowerCase() === deposit.toLowerCase()
      if (isSame) unchanged++
      if ((await isSigned(request, { deposit: data, order })) !== isSame) throw new Error(`${isSame}: ${data}`)
    }
    // Some rounds change nothing, which shows that the other ones are refused for their change.
    expect(unchanged).toBeGreaterThan(orders / 1_000)
  }
})

type Json = null | string | number | readonly Json[] | { readonly [key: string]: Json }

const planted: readonly Json[] = [
  ...[stranger, receiver, sender, ofToken.from.token.address, ofToken.to.token.address, ofCoin.from.token.address],
  ...[
    'base',
    'tempo',
    'ethereum',
    'polygon',
    'v1',
    'v2',
    '',
    '0x',
    '0xdeadbeef',
    '0x00',
    `0x${'00'.repeat(12)}${'11'.repeat(20)}`,
  ],
  ...[
    '0',
    '1',
    '9903146',
    '9903147',
    '9903148',
    '10000000',
    '10000001',
    (2n ** 256n - 1n).toString(),
    (2n ** 256n).toString(),
  ],
  ...[0, 1, 1_790_003_600, 4_294_967_295, 4_294_967_296, null, [], {}],
]

/** One change somewhere in the order: another value, or an element that is repeated, removed or moved. */
function changed(json: Json, next: (below: number) => number): Json {
  const one = () => planted[next(planted.length)] ?? null
  if (Array.isArray(json)) {
    const items: readonly Json[] = json
    const at = next(Math.max(1, items.length))
    const [before, after] = [items.slice(0, at), items.slice(at + 1)]
    const item = items[at]
    if (item === undefined) return next(4) > 0 ? [] : [one()]
    const kind = next(12)
    if (kind === 0) return [...items, item]
    if (kind === 1) return [...before, ...after]
    if (kind === 2) return [...items, changed(item, next)]
    return [...before, changed(item, next), ...after]
  }
  if (typeof json !== 'object' || json === null) return next(8) > 0 ? one() : json
  const keys = Object.keys(json)
  const key = keys[next(keys.length)] ?? ''
  return { ...json, [key]: changed(Reflect.get(json, key), next) }
}

/** What viem makes of the order; undefined if it can encode nothing. */
function idOf(order: Json): Hex | undefined {
  try {
    return relayOrderId(order as unknown as RelayOrder)
  } catch {
    return undefined
  }
}

/** Whether an order moves the money as requested, read without the tested code. */
function isHonored(request: RouteRequest, { inputs, output }: RelayOrder): boolean {
  const { from, to, rawAmount } = request
  const [input] = inputs
  const [paid] = output.payments
  if (inputs.length !== 1 || output.payments.length !== 1 || input === undefined || paid === undefined) return false
  const isTaken =
    input.payment.chainId === from.network.name &&
    sameAddress(input.payment.currency, from.token.address) &&
    BigInt(input.payment.amount) === rawAmount
  const isPaid =
    output.chainId === to.network.name &&
    sameAddress(paid.recipient, receiver) &&
    sameAddress(paid.currency, to.token.address) &&
    BigInt(paid.minimumAmount) >= rawOutMin
  const isReturned = input.refunds.every(
    ({ chainId, recipient, currency }) =>
      sameAddress(recipient, sender) &&
      [from, to].some(({ network, token }) => network.name === chainId && sameAddress(token.address, currency)),
  )
  return isTaken && isPaid && isReturned && input.refunds.length > 0 && output.calls.length === 0
}

test(`of ${orders} mutated orders of Relay, with their own deposits, none is signed that pays anybody else or less`, async () => {
  const next = sequenceFrom(17)
  for (const { request, order, id, deposit } of [honest(ofToken), honest(ofCoin)]) {
    const counts = { signed: 0, dishonest: 0 }
    for (let round = 0; round < orders / 2; round++) {
      let mutant: Json = order as unknown as Json
      for (let change = next(3); change >= 0; change--) mutant = changed(mutant, next)
      const own = idOf(mutant)
      if (own === id) continue
      expect(await isSigned(request, { deposit, order: mutant }), 'the deposit of another order').toBe(false)
      if (own === undefined) continue
      const isGood = isHonored(request, mutant as unknown as RelayOrder)
      if (!isGood) counts.dishonest++
      if (!(await isSigned(request, { deposit: depositFor(request, own), order: mutant }))) continue
      counts.signed++
      if (!isGood) throw new Error(`signed: ${JSON.stringify(mutant)}`)
    }
    // Fields that pay nobody may change; otherwise the test would check nothing.
    expect(counts.signed).toBeGreaterThan(orders / 50)
    expect(counts.dishonest).toBeGreaterThan(orders / 50)
  }
})
