import { type Address, type Hex, networkByName, tokenBySymbol, zeroAddress } from '@purser/protocol'
import { encodeFunctionData, hashStruct, pad, parseAbi } from 'viem'
import type { RouteRequest } from '../src/partners/routing/port.ts'
import { receiver, stranger } from './routes.ts'

/** The functions of LI.FI's diamond that are signed (lifinance/contracts, GenericSwapFacetV3 and AcrossFacetV4). */
export const lifiAbi = parseAbi([
  'struct Swap { address callTo; address approveTo; address sendingAssetId; address receivingAssetId; uint256 fromAmount; bytes callData; bool requiresDeposit; }',
  'struct Bridge { bytes32 transactionId; string bridge; string integrator; address referrer; address sendingAssetId; address receiver; uint256 minAmount; uint256 destinationChainId; bool hasSourceSwaps; bool hasDestinationCall; }',
  'struct Across { bytes32 receiverAddress; bytes32 refundAddress; bytes32 sendingAssetId; bytes32 receivingAssetId; uint256 outputAmount; uint128 outputAmountMultiplier; bytes32 exclusiveRelayer; uint32 quoteTimestamp; uint32 fillDeadline; uint32 exclusivityParameter; bytes message; }',
  'function swapTokensSingleV3ERC20ToERC20(bytes32 id, string integrator, string referrer, address receiver, uint256 minAmountOut, Swap swap)',
  'function swapTokensSingleV3ERC20ToNative(bytes32 id, string integrator, string referrer, address receiver, uint256 minAmountOut, Swap swap)',
  'function swapTokensSingleV3NativeToERC20(bytes32 id, string integrator, string referrer, address receiver, uint256 minAmountOut, Swap swap) payable',
  'function swapTokensMultipleV3ERC20ToERC20(bytes32 id, string integrator, string referrer, address receiver, uint256 minAmountOut, Swap[] swaps)',
  'function swapTokensMultipleV3ERC20ToNative(bytes32 id, string integrator, string referrer, address receiver, uint256 minAmountOut, Swap[] swaps)',
  'function swapTokensMultipleV3NativeToERC20(bytes32 id, string integrator, string referrer, address receiver, uint256 minAmountOut, Swap[] swaps) payable',
  'function startBridgeTokensViaAcrossV4(Bridge bridge, Across across) payable',
  'function swapAndStartBridgeTokensViaAcrossV4(Bridge bridge, Swap[] swaps, Across across) payable',
])

export const zeros: Hex = `0x${'00'.repeat(32)}`
/** An exchange that LI.FI's diamond would call. */
export const exchange: Address = '0x6352a56caadC4F1E25CD6c75970Fa768A3304e64'

export interface Swap {
  readonly callTo: Address
  readonly approveTo: Address
  readonly sendingAssetId: Address
  readonly receivingAssetId: Address
  readonly fromAmount: bigint
  readonly callData: Hex
  readonly requiresDeposit: boolean
}

interface Bridge {
  readonly referrer: Address
  readonly sendingAssetId: Address
  readonly receiver: Address
  readonly minAmount: bigint
  readonly destinationChainId: bigint
  readonly hasSourceSwaps: boolean
  readonly hasDestinationCall: boolean
}

interface Across {
  readonly receiverAddress: Hex
  readonly refundAddress: Hex
  readonly sendingAssetId: Hex
  readonly receivingAssetId: Hex
  readonly outputAmount: bigint
  readonly outputAmountMultiplier: bigint
  readonly exclusiveRelayer: Hex
  readonly message: Hex
}

export function aSwap({ from, to, rawAmount }: RouteRequest, changes: Partial<Swap> = {}): Swap {
  return {
    ...{ callTo: exchange, approveTo: exchange, callData: '0x12345678', requiresDeposit: true },
    sendingAssetId: from.token.address,
    receivingAssetId: to.token.address,
    fromAmount: rawAmount,
    ...changes,
  }
}

/** LI.FI's fee first, then the exchange, as in most of its answers. */
export function swapsWithFee(request: RouteRequest, last: Partial<Swap> = {}): readonly Swap[] {
  const fee = aSwap(request, { receivingAssetId: request.from.token.address, callTo: stranger, approveTo: stranger })
  const fromAmount = (request.rawAmount * 9_975n) / 10_000n
  return [fee, aSwap(request, { fromAmount, requiresDeposit: false, ...last })]
}

interface SwapOuter {
  readonly to?: Address
  readonly least?: bigint
}

export function singleSwap(request: RouteRequest, swap = aSwap(request), outer: SwapOuter = {}): Hex {
  const sides = `${sideOf(request.from)}To${sideOf(request.to)}`
  const args = [zeros, 'lifi-api', '', outer.to ?? receiver, outer.least ?? 9_950_000n, swap] as const
  if (sides === 'ERC20ToNative')
    return encodeFunctionData({ abi: lifiAbi, functionName: 'swapTokensSingleV3ERC20ToNative', args })
  if (sides === 'NativeToERC20')
    return encodeFunctionData({ abi: lifiAbi, functionName: 'swapTokensSingleV3NativeToERC20', args })
  return encodeFunctionData({ abi: lifiAbi, functionName: 'swapTokensSingleV3ERC20ToERC20', args })
}

export function multipleSwaps(request: RouteRequest, swaps = swapsWithFee(request), outer: SwapOuter = {}): Hex {
  const sides = `${sideOf(request.from)}To${sideOf(request.to)}`
  const args = [zeros, 'lifi-api', '', outer.to ?? receiver, outer.least ?? 9_950_000n, swaps] as const
  if (sides === 'ERC20ToNative')
    return encodeFunctionData({ abi: lifiAbi, functionName: 'swapTokensMultipleV3ERC20ToNative', args })
  if (sides === 'NativeToERC20')
    return encodeFunctionData({ abi: lifiAbi, functionName: 'swapTokensMultipleV3NativeToERC20', args })
  return encodeFunctionData({ abi: lifiAbi, functionName: 'swapTokensMultipleV3ERC20ToERC20', args })
}

function sideOf({ token }: RouteRequest['from']): 'ERC20' | 'Native' {
  return token.address === zeroAddress ? 'Native' : 'ERC20'
}

interface Bridging {
  readonly bridge?: Partial<Bridge>
  readonly across?: Partial<Across>
  readonly swaps?: readonly Swap[]
}

function structsOf({ from, to, rawAmount, fromAddress, toAddress }: RouteRequest, { bridge, across }: Bridging) {
  return {
    bridge: {
      ...{ transactionId: zeros, bridge: 'across', integrator: 'lifi-api', referrer: zeroAddress },
      ...{ sendingAssetId: from.token.address, receiver: toAddress, minAmount: rawAmount },
      ...{ destinationChainId: BigInt(to.network.chainId), hasSourceSwaps: false, hasDestinationCall: false },
      ...bridge,
    },
    across: {
      ...{ receiverAddress: pad(toAddress), refundAddress: pad(fromAddress) },
      ...{ sendingAssetId: pad(from.token.address), receivingAssetId: pad(to.token.address) },
      ...{ outputAmount: (rawAmount * 996n) / 1_000n, outputAmountMultiplier: 10n ** 18n, exclusiveRelayer: zeros },
      ...{ quoteTimestamp: 1_790_000_000, fillDeadline: 1_790_003_600, exclusivityParameter: 0, message: '0x' as Hex },
      ...across,
    },
  }
}

export function bridging(request: RouteRequest, changes: Bridging = {}): Hex {
  const { bridge, across } = structsOf(request, changes)
  return encodeFunctionData({ abi: lifiAbi, functionName: 'startBridgeTokensViaAcrossV4', args: [bridge, across] })
}

/** LI.FI's fee first, then Across, which pays out 99.98 % of the rest. */
export function swappingAndBridging(request: RouteRequest, changes: Bridging = {}): Hex {
  const token = request.from.token.address
  const swaps = changes.swaps ?? [aSwap(request, { receivingAssetId: token, callTo: stranger, approveTo: stranger })]
  const minAmount = (request.rawAmount * 9_975n) / 10_000n
  const { bridge, across } = structsOf(request, {
    bridge: { minAmount, hasSourceSwaps: true, ...changes.bridge },
    across: { outputAmountMultiplier: 999_800_000_000_000_000n, ...changes.across },
  })
  const args = [bridge, swaps, across] as const
  return encodeFunctionData({ abi: lifiAbi, functionName: 'swapAndStartBridgeTokensViaAcrossV4', args })
}

const orderTypes = {
  Order: [
    { name: 'version', type: 'string' },
    { name: 'solverChainId', type: 'string' },
    { name: 'solver', type: 'address' },
    { name: 'salt', type: 'uint256' },
    { name: 'inputs', type: 'Input[]' },
    { name: 'output', type: 'Output' },
    { name: 'fees', type: 'Fee[]' },
  ],
  Input: [
    { name: 'payment', type: 'InputPayment' },
    { name: 'refunds', type: 'InputRefund[]' },
  ],
  InputPayment: [
    { name: 'chainId', type: 'string' },
    { name: 'currency', type: 'bytes' },
    { name: 'amount', type: 'uint256' },
    { name: 'weight', type: 'uint256' },
  ],
  InputRefund: [
    { name: 'chainId', type: 'string' },
    { name: 'recipient', type: 'bytes' },
    { name: 'currency', type: 'bytes' },
    { name: 'minimumAmount', type: 'uint256' },
    { name: 'deadline', type: 'uint32' },
    { name: 'extraData', type: 'bytes' },
  ],
  Output: [
    { name: 'chainId', type: 'string' },
    { name: 'payments', type: 'OutputPayment[]' },
    { name: 'deadline', type: 'uint32' },
    { name: 'calls', type: 'bytes[]' },
    { name: 'extraData', type: 'bytes' },
  ],
  OutputPayment: [
    { name: 'recipient', type: 'bytes' },
    { name: 'currency', type: 'bytes' },
    { name: 'minimumAmount', type: 'uint256' },
    { name: 'expectedAmount', type: 'uint256' },
  ],
  Fee: [
    { name: 'recipientChainId', type: 'string' },
    { name: 'recipient', type: 'bytes' },
    { name: 'currencyChainId', type: 'string' },
    { name: 'currency', type: 'bytes' },
    { name: 'amount', type: 'uint256' },
  ],
} as const

interface OrderChanges {
  readonly recipient?: Hex
  readonly currency?: Hex
  readonly least?: bigint
  readonly toChain?: string
  readonly refundTo?: Hex
  readonly refundIn?: Hex
  readonly amount?: bigint
  readonly calls?: readonly Hex[]
}

type Ordered = Pick<RouteRequest, 'from' | 'to' | 'rawAmount' | 'fromAddress' | 'toAddress'>

/** A Relay order for a request, as its API returns it, and its deposit id. */
export function relayOrder(request: Ordered, changes: OrderChanges = {}) {
  const data = orderData(request, changes)
  return { data, id: relayOrderId(data) }
}

export type RelayOrder = ReturnType<typeof orderData>

/** The deposit id of an order, by viem; throws if viem cannot encode the order. */
export function relayOrderId(order: RelayOrder): Hex {
  return hashStruct({ types: orderTypes, primaryType: 'Order', data: raised(order) })
}

interface RelayFee {
  readonly recipientChainId: string
  readonly recipient: Hex
  readonly currencyChainId: string
  readonly currency: Hex
  readonly amount: string
}

function orderData(request: Ordered, changes: OrderChanges) {
  const { from, to, rawAmount, fromAddress, toAddress } = request
  const deadline = 1_790_003_600
  const least = changes.least ?? (rawAmount * 996n) / 1_000n
  return {
    version: 'v1',
    solverChainId: 'base',
    solver: '0xfd073a9ccb34f8a13c466eb16dff990d6178a5ef' as Hex,
    salt: '1234567890',
    inputs: [
      {
        payment: {
          ...{ chainId: from.network.name as string, currency: from.token.address },
          ...{ amount: (changes.amount ?? rawAmount).toString(), weight: '1' },
        },
        refunds: [
          {
            ...{ chainId: from.network.name as string, recipient: changes.refundTo ?? fromAddress },
            ...{
              currency: changes.refundIn ?? from.token.address,
              minimumAmount: '0',
              deadline,
              extraData: '0x' as Hex,
            },
          },
        ],
      },
    ],
    output: {
      chainId: changes.toChain ?? (to.network.name as string),
      payments: [
        {
          ...{ recipient: changes.recipient ?? toAddress, currency: changes.currency ?? to.token.address },
          ...{ minimumAmount: least.toString(), expectedAmount: rawAmount.toString() },
        },
      ],
      ...{ calls: changes.calls ?? [], deadline, extraData: '0x' as Hex },
    },
    fees: [] as RelayFee[],
  }
}

/** Numbers as viem requires them. */
function raised(order: RelayOrder) {
  const payments = order.output.payments.map((one) => ({
    ...one,
    minimumAmount: BigInt(one.minimumAmount),
    expectedAmount: BigInt(one.expectedAmount),
  }))
  const inputs = order.inputs.map(({ payment, refunds }) => ({
    payment: { ...payment, amount: BigInt(payment.amount), weight: BigInt(payment.weight) },
    refunds: refunds.map((refund) => ({ ...refund, minimumAmount: BigInt(refund.minimumAmount) })),
  }))
  const fees = order.fees.map((fee) => ({ ...fee, amount: BigInt(fee.amount) }))
  return { ...order, salt: BigInt(order.salt), inputs, output: { ...order.output, payments }, fees }
}

/** The address of a known token. */
export function addressOf(network: string, symbol: string): Address {
  const found = networkByName(network)
  return (found && tokenBySymbol(found, symbol)?.address) ?? zeroAddress
}
