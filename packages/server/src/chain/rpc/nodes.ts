import type { Clock } from '../../platform/clock.ts'
import type { Log } from '../../platform/log.ts'

/**
 * `unchecked`: its chain ID is not known yet. `behind`: it answers, but its head is behind the others; used only when no other node answers, and for fees
 * where the others are no majority.
 * `suspended`: it failed; probed in the background and used only when no other node is left. `refused`: it reports another chain ID and is never
 * used.
 */
export type NodeState = 'unchecked' | 'up' | 'behind' | 'suspended' | 'refused'

/** One node of a network. Its URL may contain an API key, so logs and metrics show its index in the configuration instead. */
export interface Node {
  /** Position in the configuration, from 1. */
  readonly index: number
  readonly url: string
  readonly state: NodeState
}

export interface NodesOptions {
  readonly network: string
  readonly urls: readonly string[]
  readonly clock: Clock
  readonly log?: Log | undefined
  /** Called for every node at startup and on each state change. */
  readonly onState?: ((node: Node) => void) | undefined
}

/** The health of a network's nodes, as observed by this process. */
export interface Nodes {
  readonly all: readonly Node[]
  /**
   * The usable nodes in order of preference: healthy nodes in configured order, then those that are behind, then suspended ones, longest suspended
   * first.
   */
  inOrder(): readonly Node[]
  /** Records a valid response. A node that is behind stays so until its head has caught up. */
  markUp(node: Node): void
  /**
   * Records a failure and suspends the node: five seconds, doubled each time until it has been up for a minute, at most a minute. A node may answer the probe and
   * fail all else. Its chain ID is checked again when it recovers.
   */
  markFailed(node: Node, error: unknown): void
  /** Records that the node contradicts the majority. Suspends it for a minute, even if it answers meanwhile, and logs an error. */
  markDissenting(node: Node): void
  /** Logs, at most once in five minutes for each node, that the node denies a transfer that another node has, where no majority decides. */
  reportDenial(node: Node): void
  /**
   * Compares the heads of the nodes that answer. A node is behind when more than half of the others are ahead of it by more than `lagBlocks`, so
   * that a single node that invents blocks does not affect the others.
   */
  compareHeads(heads: readonly NodeHead[], lagBlocks: bigint): void
  /** Records that the node reports another chain ID. */
  markRefused(node: Node): void
  /** Nodes due for a background probe: suspended nodes whose time is over, and healthy nodes whose chain ID was not checked for a while. */
  toProbe(): readonly Node[]
}

interface NodeHead {
  readonly node: Node
  readonly head: bigint
}

const suspendMsFirst = 5_000
const suspendMsMax = 60_000
const denialLogMs = 300_000
const checkAgainMs = 300_000

interface Health {
  readonly index: number
  readonly url: string
  state: NodeState
  failures: number
  upSinceMs: number
  isDissenting: boolean
  /** Time of the next background probe. */
  probeAtMs: number
}

export function createNodes({ network, urls, clock, log, onState }: NodesOptions): Nodes {
  const nodes = urls.map(
    (url, index): Health => ({
      index: index + 1,
      url,
      state: 'unchecked',
      failures: 0,
      upSinceMs: 0,
      isDissenting: false,
      probeAtMs: 0,
    }),
  )
  for (const node of nodes) onState?.(node)
  const healthOf = ({ index }: Node): Health => {
    const health = nodes[index - 1]
    if (health === undefined) throw new Error(`${network} has no node ${index}`)
    return health
  }
  const setState = (node: Health, state: NodeState): boolean => {
    if (node.state === state) return false
    node.state = state
    onState?.(node)
    return true
  }
  const now = (): number => clock.now().getTime()
  const reportedMs = new Map<number, number>()
  return {
    all: nodes,
    inOrder() {
      const healthy = nodes.filter(({ state }) => state === 'up' || state === 'unchecked')
      const suspended = nodes.filter(({ state }) => state === 'suspended')
      const behind = nodes.filter(({ state }) => state === 'behind')
      return [...healthy, ...behind, ...suspended.sort((a, b) => a.probeAtMs - b.probeAtMs)]
    },
    markUp(node) {
      const health = healthOf(node)
      if (health.isDissenting && health.probeAtMs > now()) return
      health.isDissenting = false
      if (health.state !== 'up') health.probeAtMs = now() + checkAgainMs
      const before = health.state
      if (before === 'behind') return
      if (!setState(health, 'up')) return
      health.upSinceMs = now()
      if (before !== 'unchecked') log?.info({ network, node: node.index }, 'a node recovered')
    },
    markFailed(node, error) {
      const health = healthOf(node)
      if (health.state !== 'suspended' && now() - health.upSinceMs >= suspendMsMax) health.failures = 0
      health.probeAtMs = now() + Math.min(suspendMsMax, suspendMsFirst * 2 ** Math.min(health.failures, 10))
      health.failures += 1
      if (setState(health, 'suspended'))
        log?.warn({ network, node: node.index, err: error }, 'a node failed and is suspended')
    },
    markDissenting(node) {
      const health = healthOf(node)
      health.isDissenting = true
      health.probeAtMs = now() + suspendMsMax
      if (setState(health, 'suspended'))
        log?.error({ network, node: node.index }, 'a node contradicts the majority and is suspended')
    },
    reportDenial({ index }) {
      if (now() - (reportedMs.get(index) ?? Number.NEGATIVE_INFINITY) < denialLogMs) return
      reportedMs.set(index, now())
      log?.error({ network, node: index }, 'a node denies a transfer that another node has, and no majority decides')
    },
    compareHeads(heads, lagBlocks) {
      for (const { node, head } of heads) {
        const health = healthOf(node)
        if (health.state !== 'up' && health.state !== 'behind') continue
        const others = heads.filter((other) => other.node.index !== node.index)
        const ahead = others.filter((other) => other.head > head + lagBlocks)
        const isBehind = ahead.length * 2 > others.length
        if (!setState(health, isBehind ? 'behind' : 'up')) continue
        if (isBehind) log?.warn({ network, node: node.index, head: head.toString() }, 'a node is behind the others')
        else log?.info({ network, node: node.index }, 'a node has caught up with the others')
      }
    },
    markRefused(node) {
      const health = healthOf(node)
      health.probeAtMs = now() + suspendMsMax
      if (setState(health, 'refused'))
        log?.error({ network, node: node.index }, 'a node reports another chain ID than configured, and is not used')
    },
    toProbe: () => nodes.filter(({ probeAtMs }) => probeAtMs <= now()),
  }
}
