import { setTimeout as delay } from 'node:timers/promises'
import { type Address, networkByName, zeroAddress } from '@purser/protocol'
import { decodeFunctionResult, encodeFunctionData, type Hex, parseAbi, toEventSelector } from 'viem'
import { type ReachableChain, sendFromDevAccount } from './faucet.ts'
import { sandboxBridgeAddress } from './predeploys.ts'
import { isRecord, rpc, rpcHex } from './rpc.ts'

const abi = parseAbi([
  'event Deposited(bytes32 indexed id)',
  'function deposits(bytes32 id) view returns (uint8 state, address depositor, address token, uint256 amount, uint256 destinationChainId, address destinationToken, address recipient, uint256 amountOutMin)',
  'function fills(bytes32 id) view returns (address token, address recipient, uint256 amount)',
  'function fill(bytes32 id, address token, uint256 amount, address recipient)',
  'function refund(bytes32 id)',
  'function fail(bytes32 id)',
])
const deposited = toEventSelector('Deposited(bytes32)')

/**
 * The relayer's behavior for a deposit. `deliver`: pays the quoted amount. `less`: pays half of the guaranteed minimum.
 * `refund`: refunds at once. `fail`: gives up, and refunds only after the conduct is set to `refund`. `stall`: does
 * nothing until the conduct changes.
 */
export type RelayerConduct = 'deliver' | 'less' | 'refund' | 'fail' | 'stall'

export type BridgeDeposit = {
  id: Hex
  depositor: Address
  token: Address
  amount: bigint
  destinationChainId: bigint
  destinationToken: Address
  recipient: Address
  amountOutMin: bigint
}

export type BridgeRelayer = {
  /** Sets the conduct from now on, also for pending deposits. */
  setConduct(conduct: RelayerConduct): void
  /** Checks every open deposit once. Returns how many it acted on. */
  pass(): Promise<number>
  /** Runs passes until stopped. */
  start(everyMs?: number): void
  stop(): Promise<void>
}

/** The relayer pays 0.1% less than the deposit, in the other token's decimals. The sandbox's quote deducts the same. */
const keptParts = 999n
const partsInAll = 1_000n

/**
 * The relayer of the sandbox's bridge between these chains. It pays a deposit at most once, whatever its conduct and
 * however often it starts.
 */
export function createBridgeRelayer(chains: readonly ReachableChain[]): BridgeRelayer {
  let conduct: RelayerConduct = 'deliver'
  let stopping = false
  let running: Promise<void> | undefined
  const waiting = new Map<Hex, ReachableChain>()
  const seenTo = new Map<string, bigint>()
  const pass = async (): Promise<number> => {
    for (const chain of chains) await readDeposits(chain, { waiting, seenTo })
    let done = 0
    for (const [id, chain] of waiting) {
      const outcome = await act(chains, chain, { id, conduct })
      if (outcome !== 'left') done += 1
      if (outcome === 'ended') waiting.delete(id)
    }
    return done
  }
  return {
    setConduct: (next) => {
      conduct = next
    },
    pass,
    start(everyMs = 250) {
      running ??= (async () => {
        while (!stopping) {
          // A chain that is being stopped no longer responds.
          await pass().catch(() => 0)
          await delay(everyMs)
        }
      })()
    },
    async stop() {
      stopping = true
      await running
    },
  }
}

type DepositCursor = { waiting: Map<Hex, ReachableChain>; seenTo: Map<string, bigint> }

async function readDeposits(chain: ReachableChain, { waiting, seenTo }: DepositCursor): Promise<void> {
  const head = BigInt(await rpcHex(chain.rpcUrl, 'eth_blockNumber'))
  const from = seenTo.get(chain.rpcUrl) ?? 0n
  if (head < from) return
  const range = { fromBlock: `0x${from.toString(16)}`, toBlock: `0x${head.toString(16)}` }
  const logs = await rpc(chain.rpcUrl, 'eth_getLogs', [
    { address: sandboxBridgeAddress, topics: [deposited], ...range },
  ])
  for (const log of Array.isArray(logs) ? logs : []) {
    const id = isRecord(log) && Array.isArray(log.topics) ? log.topics[1] : undefined
    if (typeof id === 'string' && id.startsWith('0x')) waiting.set(id as Hex, chain)
  }
  seenTo.set(chain.rpcUrl, head + 1n)
}

async function act(
  chains: readonly ReachableChain[],
  source: ReachableChain,
  { id, conduct }: { id: Hex; conduct: RelayerConduct },
): Promise<'left' | 'ended' | 'failed'> {
  const { state, ...deposit } = await readDeposit(source, id)
  const isOpen = state === 1
  const isFailed = state === 3
  if (!isOpen && !isFailed) return 'ended'
  const end = chains.find(({ network }) => networkByName(network)?.chainId === Number(deposit.destinationChainId))
  // Another relayer, or this one before a restart, has paid out: nothing is refunded then.
  if (end !== undefined && (await isFilled(end, id))) return 'ended'
  if (conduct === 'refund') {
    await callBridge(source, encodeFunctionData({ abi, functionName: 'refund', args: [id] }))
    return 'ended'
  }
  if (!isOpen || conduct === 'stall' || end === undefined) return 'left'
  if (conduct === 'fail') {
    await callBridge(source, encodeFunctionData({ abi, functionName: 'fail', args: [id] }))
    return 'failed'
  }
  await payOut(source, end, { ...deposit, isLess: conduct === 'less' })
  return 'ended'
}

function callBridge(chain: ReachableChain, data: Hex): Promise<Hex> {
  return sendFromDevAccount(chain, sandboxBridgeAddress, data)
}

async function payOut(
  source: ReachableChain,
  destination: ReachableChain,
  deposit: BridgeDeposit & { isLess: boolean },
): Promise<void> {
  const [given, paid] = [decimalsOf(source, deposit.token), decimalsOf(destination, deposit.destinationToken)]
  const scaled = (deposit.amount * 10n ** BigInt(paid)) / 10n ** BigInt(given)
  const amount = deposit.isLess ? deposit.amountOutMin / 2n : (scaled * keptParts) / partsInAll
  const args = [deposit.id, deposit.destinationToken, amount, deposit.recipient] as const
  await callBridge(destination, encodeFunctionData({ abi, functionName: 'fill', args }))
}

async function readDeposit(chain: ReachableChain, id: Hex): Promise<BridgeDeposit & { state: number }> {
  const data = encodeFunctionData({ abi, functionName: 'deposits', args: [id] })
  const response = await rpcHex(chain.rpcUrl, 'eth_call', [{ to: sandboxBridgeAddress, data }, 'latest'])
  const [state, depositor, token, amount, destinationChainId, destinationToken, recipient, amountOutMin] =
    decodeFunctionResult({ abi, functionName: 'deposits', data: response })
  return { id, state, depositor, token, amount, destinationChainId, destinationToken, recipient, amountOutMin }
}

async function isFilled(chain: ReachableChain, id: Hex): Promise<boolean> {
  const data = encodeFunctionData({ abi, functionName: 'fills', args: [id] })
  const response = await rpcHex(chain.rpcUrl, 'eth_call', [{ to: sandboxBridgeAddress, data }, 'latest'])
  return decodeFunctionResult({ abi, functionName: 'fills', data: response })[2] > 0n
}

function decimalsOf({ network }: ReachableChain, token: Address): number {
  if (token === zeroAddress) return 18
  return networkByName(network)?.tokens.find(({ address }) => address === token)?.decimals ?? 6
}
