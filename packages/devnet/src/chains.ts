import { existsSync, mkdirSync } from 'node:fs'
import path from 'node:path'
import { type Address, type Network, type NetworkName, networkByName } from '@purser/protocol'
import { startAnvil } from './anvil.ts'
import { endOrphanChain, forgetChain, markOf, rememberChain, saveChainState, saveWhileRunning } from './chain-state.ts'
import { endChild, guardChild } from './child-guard.ts'
import { takeLock } from './lock.ts'
import { installContracts } from './predeploys.ts'

export type ChainOptions = {
  network: NetworkName
  /** Default: a free one. */
  port?: number
  /** The file in which the chain's state is saved. Without it the chain starts empty each time. */
  stateFile?: string
  /** Default: one block per transaction, at once. Tempo always makes at least one block a second. */
  blockTimeSeconds?: number
  /** Whether each transaction pays a data fee, as on networks of the OP Stack. `setL1Fee` sets it. Default: no fee. */
  takesL1Fee?: boolean
  epochBlocks?: number
}

export type DevChain = {
  network: NetworkName
  chainId: number
  rpcUrl: string
  pid: number
  /** By the symbol in the registry of chains. */
  tokens: Record<string, Address>
  /** Saves the state, if it has a file, and ends the chain. */
  stop(): Promise<void>
  /** The crash, for tests: SIGKILL. Resolves when the process is dead. */
  kill(): Promise<void>
}

/**
 * The account that pays for the faucet's transactions. Its key is public (anvil's first): it must never have real money.
 */
export const devAccount = {
  address: '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266',
  privateKey: '0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80',
} as const

/**
 * Runs a local chain with the chain id, the token addresses and the token domains of a network of the registry, so that
 * signatures have the same form on both. With a state file it continues from the saved state, also after a crash.
 */
export async function startChain(options: ChainOptions): Promise<DevChain> {
  const network = networkByName(options.network)
  if (network === undefined) throw new Error(`No network is called ${options.network}`)
  if (options.stateFile === undefined) return run(options, network)

  const stateFile = path.resolve(options.stateFile)
  mkdirSync(path.dirname(stateFile), { recursive: true })
  const lock = takeLock(`${stateFile}.lock`, stateFile)
  try {
    await endOrphanChain(stateFile)
    return await runOnFile(options, network, { stateFile, release: lock.release })
  } catch (error) {
    lock.release()
    throw error
  }
}

async function run(options: ChainOptions, network: Network, stateFile?: string): Promise<DevChain> {
  const { child, rpcUrl } = await startAnvil(anvilOptions(options, network, stateFile))
  const letGo = guardChild(child, 'SIGTERM')
  child.once('exit', letGo)
  await installContracts(rpcUrl, network, devAccount.address)
  return {
    network: network.name,
    chainId: network.chainId,
    rpcUrl,
    pid: child.pid ?? 0,
    tokens: Object.fromEntries(network.tokens.map(({ symbol, address }) => [symbol, address])),
    stop: () => endChild(child, ['SIGTERM', 'SIGKILL']),
    kill: () => endChild(child, ['SIGKILL']),
  }
}

type OnFile = { stateFile: string; release(): void }

async function runOnFile(options: ChainOptions, network: Network, { stateFile, release }: OnFile): Promise<DevChain> {
  const chain = await run(options, network, stateFile)
  rememberChain(stateFile, chain.pid, chain.rpcUrl)
  const saving = saveWhileRunning(chain.rpcUrl, stateFile)
  return {
    ...chain,
    async stop() {
      await saving.stop()
      await saveChainState(chain.rpcUrl, stateFile)
      await chain.stop()
      forgetChain(stateFile)
      release()
    },
    async kill() {
      await chain.kill()
      await saving.stop()
      release()
    },
  }
}

function anvilOptions(options: ChainOptions, network: Network, stateFile: string | undefined) {
  const isTempo = network.nativeCoin === null
  const blockTimeSeconds = options.blockTimeSeconds ?? (isTempo ? 1 : undefined)
  return {
    chainId: network.chainId,
    isTempo,
    ...(options.takesL1Fee === undefined ? {} : { takesL1Fee: options.takesL1Fee }),
    ...(options.epochBlocks === undefined ? {} : { epochBlocks: options.epochBlocks }),
    ...(options.port === undefined ? {} : { port: options.port }),
    ...(blockTimeSeconds === undefined ? {} : { blockTimeSeconds }),
    ...(stateFile === undefined ? {} : { mark: markOf(stateFile) }),
    ...(stateFile !== undefined && existsSync(stateFile) ? { loadState: stateFile } : {}),
  }
}
