import { type DevChain, startChain } from '@purser/devnet'
import { type Network, networkByName } from '@purser/protocol'
import { createChains } from '../src/chain/chains.ts'
import type { Chain, Chains } from '../src/chain/port.ts'
import { type Clock, systemClock } from '../src/platform/clock.ts'
import type { Log } from '../src/platform/log.ts'
import { createOutbound } from '../src/platform/outbound.ts'
import { type LyingNode, startLyingNode } from './lying-node.ts'

export interface LiarStage {
  readonly dev: DevChain
  readonly liar: LyingNode
  /** A chain port over the lying node and `trueNodes` correct nodes. */
  among(trueNodes: number, options?: LiarStageOptions): Chain
  /** As `among`, for nodes whose heads are compared until the test ends it. */
  comparedAmong(trueNodes: number): { readonly chain: Chain; readonly chains: Chains; readonly network: Network }
  stop(): Promise<void>
}

interface LiarStageOptions {
  readonly confirmationDepth?: number
  readonly clock?: Clock
  readonly rpcTimeoutMs?: number
  readonly log?: Log
  /** More nodes beside the lying one and the correct ones. */
  readonly moreUrls?: readonly string[]
}

/** Starts a chain with a node in front of it that lies as a test says. */
export async function aLiarStage(): Promise<LiarStage> {
  const dev = await startChain({ network: 'base-sepolia' })
  const liar = await startLyingNode(dev.rpcUrl)
  const outbound = createOutbound()
  const chainsOf = (trueNodes: number, options: LiarStageOptions = {}) => {
    const { confirmationDepth = 1, clock = systemClock, rpcTimeoutMs = 4_000, moreUrls = [], log } = options
    const network: Network = { ...baseSepolia(), confirmationDepth }
    const trueUrls = Array.from({ length: trueNodes }, () => dev.rpcUrl)
    const rpcUrls = { [network.name]: [liar.url, ...trueUrls, ...moreUrls] }
    const parts = { outbound, clock, networks: [network], rpcUrls, rpcTimeoutMs, ...(log && { log }) }
    return { chains: createChains(parts), network }
  }
  return {
    dev,
    liar,
    among(trueNodes, options) {
      const { chains, network } = chainsOf(trueNodes, options)
      return chains.on(network)
    },
    comparedAmong(trueNodes) {
      const { chains, network } = chainsOf(trueNodes)
      chains.watch()
      return { chain: chains.on(network), chains, network }
    },
    async stop() {
      await outbound.close()
      await liar.stop()
      await dev.stop()
    },
  }
}

function baseSepolia(): Network {
  const network = networkByName('base-sepolia')
  if (network === undefined) throw new Error('no such network')
  return network
}
