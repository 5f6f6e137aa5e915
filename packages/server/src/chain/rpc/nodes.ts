import type { Clock } from '../../platform/clock.ts'
import type { Log } from '../../platform/log.ts'

/**
 * `unchecked`: its chain is not known yet. `behind`: it answers, and its head is behind that of the others: it is used only where no other
 * node answers. `resting`: it failed; it is checked in the background, and used only where no other node is there. `refused`: it is of another
 * chain, and is used for nothing.
 */
export type NodeState = 'unchecked' | 'up' | 'behind' | 'resting' | 'refused'

/** One node of a network. Its address may hold a key, so people are told its place in the configuration. */
export interface Node {
  /** From 1, as the addresses stand in the configuration. */
  readonly place: number
  readonly url: string
  readonly state: NodeState
}

export interface NodesOptions {
  readonly network: string
  readonly urls: readonly string[]
  readonly clock: Clock
  readonly log?: Log | undefined
  /** Told of every node at once, and of each change. */
  readonly onState?: ((node: Node) => void) | undefined
}

/** The health of a network's nodes, as this process has met them. */
export interface Nodes {
  readonly all: readonly Node[]
  /** In the order in which they are used: those that are well as configured, those that are behind, those that rest, the longest rested first. */
  inOrder(): readonly Node[]
  /** It answered as it must. One that is behind stays so until its head says otherwise. */
  markUp(node: Node): void
  /** It failed, and rests: five seconds, twice as long each time, a minute at most. Which chain it is of is asked again when it is back. */
  markFailed(node: Node, error: unknown): void
  /** It contradicts the majority of the others: it rests a minute, also where it answers meanwhile, and operators are alerted. */
  markDissenting(node: Node): void
  /**
   * Compares the heads of nodes that answer. One is behind when more than half of the others are ahead of it by more than this many blocks, so
   * that no single node that invents blocks makes the others look late.
   */
  compareHeads(heads: readonly NodeHead[], lagBlocks: bigint): void
  /** It is of another chain. */
  markRefused(node: Node): void
  /** Those to be asked in the background: whose rest is over, and those well that were not asked which chain they are of for a while. */
  toProbe(): readonly Node[]
}

export interface NodeHead {
  readonly node: Node
  readonly head: bigint
}

const restMsFirst = 5_000
const restMsMax = 60_000
const checkAgainMs = 300_000

interface Health {
  readonly place: number
  readonly url: string
  state: NodeState
  failures: number
  isDissenting: boolean
  /** Not before this is it asked in the background. */
  probeAtMs: number
}

export function createNodes({ network, urls, clock, log, onState }: NodesOptions): Nodes {
  const nodes = urls.map(
    (url, index): Health => ({
      place: index + 1,
      url,
      state: 'unchecked',
      failures: 0,
      isDissenting: false,
      probeAtMs: 0,
    }),
  )
  for (const node of nodes) onState?.(node)
  const healthOf = ({ place }: Node): Health => {
    const health = nodes[place - 1]
    if (health === undefined) throw new Error(`${network} has no node ${place}`)
    return health
  }
  const enter = (node: Health, state: NodeState): boolean => {
    if (node.state === state) return false
    node.state = state
    onState?.(node)
    return true
  }
  const now = (): number => clock.now().getTime()
  return {
    all: nodes,
    inOrder() {
      const well = nodes.filter(({ state }) => state === 'up' || state === 'unchecked')
      const resting = nodes.filter(({ state }) => state === 'resting')
      const behind = nodes.filter(({ state }) => state === 'behind')
      return [...well, ...behind, ...resting.sort((a, b) => a.probeAtMs - b.probeAtMs)]
    },
    markUp(node) {
      const health = healthOf(node)
      if (health.isDissenting && health.probeAtMs > now()) return
      health.isDissenting = false
      if (health.state !== 'up') health.probeAtMs = now() + checkAgainMs
      health.failures = 0
      const before = health.state
      if (before === 'behind') return
      if (enter(health, 'up') && before !== 'unchecked') log?.info({ network, node: node.place }, 'a node is back')
    },
    markFailed(node, error) {
      const health = healthOf(node)
      health.probeAtMs = now() + Math.min(restMsMax, restMsFirst * 2 ** Math.min(health.failures, 10))
      health.failures += 1
      if (enter(health, 'resting')) log?.warn({ network, node: node.place, err: error }, 'a node fails and is rested')
    },
    markDissenting(node) {
      const health = healthOf(node)
      health.isDissenting = true
      health.probeAtMs = now() + restMsMax
      if (enter(health, 'resting'))
        log?.error({ network, node: node.place }, 'a node contradicts the majority of the others and is rested')
    },
    compareHeads(heads, lagBlocks) {
      for (const { node, head } of heads) {
        const health = healthOf(node)
        if (health.state !== 'up' && health.state !== 'behind') continue
        const others = heads.filter((other) => other.node.place !== node.place)
        const ahead = others.filter((other) => other.head > head + lagBlocks)
        const isBehind = ahead.length * 2 > others.length
        if (!enter(health, isBehind ? 'behind' : 'up')) continue
        if (isBehind) log?.warn({ network, node: node.place, head: head.toString() }, 'a node is behind the others')
        else log?.info({ network, node: node.place }, 'a node has caught up with the others')
      }
    },
    markRefused(node) {
      const health = healthOf(node)
      health.probeAtMs = now() + restMsMax
      if (enter(health, 'refused'))
        log?.error({ network, node: node.place }, 'a node is of another chain than it stands for, and is not used')
    },
    toProbe: () => nodes.filter(({ probeAtMs }) => probeAtMs <= now()),
  }
}
