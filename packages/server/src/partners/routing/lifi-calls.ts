import { type Hex, zeroAddress } from '@purser/protocol'
import type { CallFacts } from './guard.ts'
import { argumentsOf, selectorIn, selectorOf, type Words } from './words.ts'

const swapData = '(address,address,address,address,uint256,bytes,bool)'

/**
 * LI.FI's swaps on one chain, all of which begin alike: transaction id, integrator, referrer, receiver, least amount
 * (lifinance/contracts, GenericSwapFacet and GenericSwapFacetV3).
 */
const swaps: readonly Hex[] = [
  `swapTokensGeneric(bytes32,string,string,address,uint256,${swapData}[])`,
  ...['ERC20ToERC20', 'ERC20ToNative', 'NativeToERC20'].flatMap((kind) => [
    `swapTokensSingleV3${kind}(bytes32,string,string,address,uint256,${swapData})`,
    `swapTokensMultipleV3${kind}(bytes32,string,string,address,uint256,${swapData}[])`,
  ]),
].map(selectorOf)

/** What a swap's bytes say; undefined for a function that is not one of LI.FI's swaps. */
export function readLifiSwap(data: Hex, chainId: number): CallFacts | undefined {
  const selector = selectorIn(data)
  const args = argumentsOf(data)
  const [recipient, rawOutMin] = [args.address(3), args.uint(4)]
  if (selector === undefined || !swaps.includes(selector)) return undefined
  if (recipient === undefined || rawOutMin === undefined) return undefined
  return { recipient, rawOutMin, destinationChainId: chainId }
}

/** Where things stand in `ILiFi.BridgeData`, the first argument of every function that bridges. */
const inBridgeData = {
  sendingAsset: 4,
  receiver: 5,
  minAmount: 6,
  destinationChain: 7,
  sourceSwaps: 8,
  call: 9,
} as const

/**
 * What a bridging call's bytes say, whichever bridge it takes. With a swap before the bridge the amount given stands elsewhere, and is
 * bounded by the approval.
 */
export function readLifiBridge(data: Hex): CallFacts | undefined {
  const args = argumentsOf(data)
  const offset = args.uint(0)
  if (offset === undefined || offset % 32n !== 0n || offset > 4_096n) return undefined
  const fields = bridgeDataAt(args, Number(offset / 32n))
  const selector = selectorIn(data)
  return selector === undefined || swaps.includes(selector) ? undefined : fields
}

function bridgeDataAt(args: Words, base: number): CallFacts | undefined {
  const token = args.address(base + inBridgeData.sendingAsset)
  const recipient = args.address(base + inBridgeData.receiver)
  const rawAmount = args.uint(base + inBridgeData.minAmount)
  const destination = args.uint(base + inBridgeData.destinationChain)
  const hasSourceSwaps = flagOf(args.uint(base + inBridgeData.sourceSwaps))
  const callsOnArrival = flagOf(args.uint(base + inBridgeData.call))
  if (token === undefined || recipient === undefined || rawAmount === undefined || destination === undefined)
    return undefined
  if (hasSourceSwaps === undefined || callsOnArrival === undefined || recipient === zeroAddress) return undefined
  if (destination > BigInt(Number.MAX_SAFE_INTEGER)) return undefined
  return {
    recipient,
    destinationChainId: Number(destination),
    callsOnArrival,
    ...(hasSourceSwaps ? {} : { spends: { token, rawAmount } }),
  }
}

function flagOf(word: bigint | undefined): boolean | undefined {
  return word === 0n ? false : word === 1n ? true : undefined
}
