import { type Address, type Hex, sameAddress, selectorOf, zeroAddress } from '@purser/protocol'
import { type AbiType, address, arrayOf, bool, bytes, bytes32, decodeCall, tuple, uint } from './abi.ts'
import type { CallMeaning } from './guard.ts'
import { spokePoolOn } from './lifi-contracts.ts'

/** LI.FI uses at most two or three swaps; each costs about 100,000 gas. */
const swapsMax = 8

/** `LibSwap.SwapData` (lifinance/contracts, LibSwap 1.1.0). */
const SwapData = tuple({
  callTo: address,
  approveTo: address,
  sendingAssetId: address,
  receivingAssetId: address,
  fromAmount: uint(256),
  callData: bytes,
  requiresDeposit: bool,
})
type Swap = typeof SwapData extends AbiType<infer T> ? T : never
const swapText = '(address,address,address,address,uint256,bytes,bool)'

/** `ILiFi.BridgeData` (ILiFi 1.0.1). */
const BridgeData = tuple({
  transactionId: bytes32,
  bridge: bytes,
  integrator: bytes,
  referrer: address,
  sendingAssetId: address,
  receiver: address,
  minAmount: uint(256),
  destinationChainId: uint(256),
  hasSourceSwaps: bool,
  hasDestinationCall: bool,
})
type Bridge = typeof BridgeData extends AbiType<infer T> ? T : never
const bridgeText = '(bytes32,string,string,address,address,address,uint256,uint256,bool,bool)'

/** `AcrossFacetV4.AcrossV4Data` (AcrossFacetV4 1.0.0); accounts are padded to 32 bytes. */
const AcrossData = tuple({
  receiverAddress: address,
  refundAddress: address,
  sendingAssetId: address,
  receivingAssetId: address,
  outputAmount: uint(256),
  outputAmountMultiplier: uint(128),
  exclusiveRelayer: bytes32,
  quoteTimestamp: uint(32),
  fillDeadline: uint(32),
  exclusivityParameter: uint(32),
  message: bytes,
})
type Across = typeof AcrossData extends AbiType<infer T> ? T : never
const acrossText = '(bytes32,bytes32,bytes32,bytes32,uint256,uint128,bytes32,uint32,uint32,uint32,bytes)'

type Side = 'ERC20' | 'Native'

/** The chain of a call, which its bytes do not contain. */
interface SourceChain {
  readonly chainId: number
}

/** A supported function of the diamond. */
interface Known {
  readonly selector: Hex
  read(data: Hex, place: SourceChain): CallMeaning | undefined
}

/**
 * The functions of LI.FI's diamond that may be signed: the six swaps of GenericSwapFacetV3 (identical in 1.0.0 to 2.0.0) and the two bridges of
 * AcrossFacetV4. Calls without a decoder are never signed.
 */
export const lifiFunctions: readonly Known[] = [
  ...swapsOf('ERC20', 'ERC20'),
  ...swapsOf('ERC20', 'Native'),
  ...swapsOf('Native', 'ERC20'),
  knownAs(
    `startBridgeTokensViaAcrossV4(${bridgeText},${acrossText})`,
    tuple({ bridge: BridgeData, across: AcrossData }),
    ({ bridge, across }, place) => bridgeMeaning(bridge, across, [], place),
  ),
  knownAs(
    `swapAndStartBridgeTokensViaAcrossV4(${bridgeText},${swapText}[],${acrossText})`,
    tuple({ bridge: BridgeData, swaps: arrayOf(SwapData, swapsMax), across: AcrossData }),
    ({ bridge, across, swaps }, place) => bridgeMeaning(bridge, across, swaps, place),
  ),
]

/** Decodes the effect of a call to LI.FI's diamond; undefined for an unsupported function or a non-canonical encoding. */
export function readLifiCall(data: Hex, place: SourceChain): CallMeaning | undefined {
  for (const known of lifiFunctions) {
    const meaning = known.read(data, place)
    if (meaning !== undefined) return meaning
  }
  return undefined
}

function knownAs<T>(
  signature: string,
  type: AbiType<T>,
  meaningOf: (args: T, place: SourceChain) => CallMeaning | undefined,
): Known {
  const selector = selectorOf(signature)
  return {
    selector,
    read(data, place) {
      const args = decodeCall(data, selector, type)
      return args === undefined ? undefined : meaningOf(args, place)
    },
  }
}

function swapsOf(from: Side, to: Side): readonly Known[] {
  const outer = {
    transactionId: bytes32,
    integrator: bytes,
    referrer: bytes,
    receiver: address,
    minAmountOut: uint(256),
  } as const
  const head = 'bytes32,string,string,address,uint256'
  const sides = { from, to }
  return [
    knownAs(
      `swapTokensSingleV3${from}To${to}(${head},${swapText})`,
      tuple({ ...outer, swap: SwapData }),
      ({ receiver, minAmountOut, swap }, place) => swapMeaning([swap], sides, { receiver, minAmountOut, ...place }),
    ),
    knownAs(
      `swapTokensMultipleV3${from}To${to}(${head},${swapText}[])`,
      tuple({ ...outer, swaps: arrayOf(SwapData, swapsMax) }),
      ({ receiver, minAmountOut, swaps }, place) => swapMeaning(swaps, sides, { receiver, minAmountOut, ...place }),
    ),
  ]
}

/** The contract pays its whole balance of the last token to the receiver and reverts below the minimum. */
function swapMeaning(
  swaps: readonly Swap[],
  { from, to }: { readonly from: Side; readonly to: Side },
  paid: { readonly receiver: Address; readonly minAmountOut: bigint; readonly chainId: number },
): CallMeaning | undefined {
  const ends = endsOf(swaps)
  if (ends === undefined || !isOf(ends.spends.token, from) || !isOf(ends.last, to)) return undefined
  const { receiver, minAmountOut, chainId } = paid
  return {
    spends: ends.spends,
    arrives: { chainId, token: ends.last, recipient: receiver, rawMin: minAmountOut },
    changes: [{ token: ends.last, account: receiver, least: minAmountOut }],
  }
}

function isOf(asset: Address, side: Side): boolean {
  return sameAddress(asset, zeroAddress) === (side === 'Native')
}

/**
 * The first spent and the last received token of a chain of swaps; undefined when it is not a valid chain. Each swap must take the output of the
 * previous one, and only the first may take from the sender (native coin is sent with the call, whatever its flag).
 */
function endsOf(
  swaps: readonly Swap[],
): { readonly spends: CallMeaning['spends']; readonly last: Address } | undefined {
  const [first, ...rest] = swaps
  const last = swaps.at(-1)
  if (first === undefined || last === undefined) return undefined
  const isTaken = first.requiresDeposit || isOf(first.sendingAssetId, 'Native')
  if (!isTaken || rest.some(({ requiresDeposit }) => requiresDeposit)) return undefined
  if (rest.some((swap, index) => swap.sendingAssetId !== swaps[index]?.receivingAssetId)) return undefined
  return { spends: { token: first.sendingAssetId, rawAmount: first.fromAmount }, last: last.receivingAssetId }
}

/**
 * A deposit at Across by AcrossFacetV4, after swaps where there are any: these must leave at least `minAmount`, of which Across pays out the share
 * given by the multiplier. Only for tokens: Across delivers native coin as coin or as wrapped token, depending on whether the recipient is then an
 * account or a contract.
 */
function bridgeMeaning(
  bridge: Bridge,
  across: Across,
  swaps: readonly Swap[],
  { chainId }: SourceChain,
): CallMeaning | undefined {
  const hasSwaps = swaps.length > 0
  const { sendingAssetId: token, minAmount } = bridge
  const ends = hasSwaps ? endsOf(swaps) : { spends: { token, rawAmount: minAmount }, last: token }
  const pool = spokePoolOn(chainId)
  if (ends === undefined || pool === undefined || ends.last !== token || bridge.hasSourceSwaps !== hasSwaps)
    return undefined
  if (bridge.hasDestinationCall || across.message !== '0x' || bridge.receiver !== across.receiverAddress)
    return undefined
  if (across.sendingAssetId !== token || [token, across.receivingAssetId].includes(zeroAddress)) return undefined
  const { destinationChainId } = bridge
  if (destinationChainId > BigInt(Number.MAX_SAFE_INTEGER) || destinationChainId === BigInt(chainId)) return undefined
  return {
    spends: ends.spends,
    arrives: {
      chainId: Number(destinationChainId),
      token: across.receivingAssetId,
      recipient: across.receiverAddress,
      rawMin: hasSwaps ? (minAmount * across.outputAmountMultiplier) / 10n ** 18n : across.outputAmount,
    },
    refundTo: across.refundAddress,
    changes: [{ token, account: pool, least: minAmount, ...(hasSwaps ? {} : { most: minAmount }) }],
  }
}
