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
 * What the relayer does with a deposit. `deliver`: pays what was quoted. `less`: pays half of the least that was promised. `refund`: gives
 * back at once. `fail`: gives up, and gives back only when told to refund. `stall`: nothing, until told otherwise.
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
  /** From now on, also for deposits that wait. */
  tell(conduct: RelayerConduct): void
  /** Looks at every deposit that is not ended, once; answers how many it did something about. */
  pass(): Promise<number>
  /** Passes again and again until stopped. */
  start(everyMs?: number): void
  stop(): Promise<void>
}

/** One part in a thousand less than came in, in the other token's digits: the sandbox's quote takes the same. */
const keptParts = 999n
const partsInAll = 1_000n

/** The relayer of the sandbox's bridge between these chains. Whatever it is told and however often it starts, it pays a deposit once. */
export function createBridgeRelayer(chains: readonly ReachableChain[]): BridgeRelayer {
  let conduct: RelayerConduct = 'deliver'
  let stopping = false
  let running: Promise<void> | undefined
  const waiting = new Map<Hex, ReachableChain>()
  const seenTo = new Map<string, bigint>()
  const pass = async (): Promise<number> => {
    for (const chain of chains) await hear(chain, { waiting, seenTo })
    let done = 0
    for (const [id, chain] of waiting) {
      const outcome = await act(chains, chain, { id, conduct })
      if (outcome !== 'left') done += 1
      if (outcome === 'ended') waiting.delete(id)
    }
    return done
  }
  return {
    tell: (next) => {
      conduct = next
    },
    pass,
    start(everyMs = 250) {
      running ??= (async () => {
        while (!stopping) {
          // A chain that is being stopped answers no more.
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

type Heard = { waiting: Map<Hex, ReachableChain>; seenTo: Map<string, bigint> }

async function hear(chain: ReachableChain, { waiting, seenTo }: Heard): Promise<void> {
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
  // Paid out by another relayer, or before this one started: nothing is given back then.
  if (end !== undefined && (await isFilled(end, id))) return 'ended'
  if (conduct === 'refund') {
    await tellBridge(source, encodeFunctionData({ abi, functionName: 'refund', args: [id] }))
    return 'ended'
  }
  if (!isOpen || conduct === 'stall' || end === undefined) return 'left'
  if (conduct === 'fail') {
    await tellBridge(source, encodeFunctionData({ abi, functionName: 'fail', args: [id] }))
    return 'failed'
  }
  await payOut(source, end, { ...deposit, isLess: conduct === 'less' })
  return 'ended'
}

function tellBridge(chain: ReachableChain, data: Hex): Promise<Hex> {
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
  await tellBridge(destination, encodeFunctionData({ abi, functionName: 'fill', args }))
}

async function readDeposit(chain: ReachableChain, id: Hex): Promise<BridgeDeposit & { state: number }> {
  const data = encodeFunctionData({ abi, functionName: 'deposits', args: [id] })
  const answer = await rpcHex(chain.rpcUrl, 'eth_call', [{ to: sandboxBridgeAddress, data }, 'latest'])
  const [state, depositor, token, amount, destinationChainId, destinationToken, recipient, amountOutMin] =
    decodeFunctionResult({ abi, functionName: 'deposits', data: answer })
  return { id, state, depositor, token, amount, destinationChainId, destinationToken, recipient, amountOutMin }
}

async function isFilled(chain: ReachableChain, id: Hex): Promise<boolean> {
  const data = encodeFunctionData({ abi, functionName: 'fills', args: [id] })
  const answer = await rpcHex(chain.rpcUrl, 'eth_call', [{ to: sandboxBridgeAddress, data }, 'latest'])
  return decodeFunctionResult({ abi, functionName: 'fills', data: answer })[2] > 0n
}

function decimalsOf({ network }: ReachableChain, token: Address): number {
  if (token === zeroAddress) return 18
  return networkByName(network)?.tokens.find(({ address }) => address === token)?.decimals ?? 6
}
