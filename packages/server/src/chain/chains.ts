import { bytesToHex, decodeUint256, keccak256, type Network, type TokenInfo, tokenReads } from '@purser/protocol'
import type { Clock } from '../platform/clock.ts'
import type { Log } from '../platform/log.ts'
import type { Outbound } from '../platform/outbound.ts'
import { type RunningLoop, startLoop } from '../platform/work/loop.ts'
import { createBlockReads } from './blocks/reads.ts'
import { createChain, decoded, domainReads, readDomain } from './chain.ts'
import { fail } from './errors.ts'
import type { Chain, ChainHealth, Chains, TokenDomain, TokenDomainState } from './port.ts'
import { electorateOf, requestAgreement } from './rpc/acceptance.ts'
import { createAuthorizationUse } from './rpc/authorization-use.ts'
import { returnedBy } from './rpc/call-fault.ts'
import { createFirstNonce } from './rpc/first-nonce.ts'
import { createNodes, type Node, type NodeState, type Nodes } from './rpc/nodes.ts'
import { createPermit2Use } from './rpc/permit2-use.ts'
import type { QuorumReads } from './rpc/port.ts'
import { createQuorum, lagBlocksOf, type Quorum } from './rpc/quorum.ts'
import { createReceipts } from './rpc/receipts.ts'
import { createRpc, type NodeRpc, type Rpc, type Voter, type Wait } from './rpc/rpc.ts'
import { createSameCall } from './rpc/same-call.ts'
import { createStates } from './rpc/states.ts'
import { createTempoReads } from './rpc/tempo.ts'
import { createTransferReads } from './rpc/transfers.ts'
import { createDomainSeparators } from './signatures/domain-separators.ts'

export interface ChainsOptions {
  readonly outbound: Outbound
  readonly clock: Clock
  readonly networks: readonly Network[]
  readonly rpcUrls: Readonly<Record<string, readonly string[]>>
  readonly rpcTimeoutMs: number
  readonly wait?: Wait
  /** Block explorers that override a network's default, by network name; null if no explorer has the chain. */
  readonly explorerUrls?: Readonly<Record<string, string | null>> | undefined
  readonly log?: Log
  /** Called for every node at startup and whenever its health changes. */
  readonly onNode?: (network: Network, node: Node) => void
}

/** Connects every network that has a node. */
export function createChains(options: ChainsOptions): Chains {
  const configured = options.networks.filter((network) => (options.rpcUrls[network.name]?.length ?? 0) > 0)
  if (configured.length === 0)
    options.log?.warn(
      'no network is configured, so no payment is possible: set RPC_URL_<NETWORK>, such as RPC_URL_BASE',
    )
  const byName = new Map(configured.map((network) => [network.name, connect(options, network)]))
  const connected = reportingLoss([...byName.values()], options.log)
  const check = async (): Promise<void> => {
    await Promise.all(connected.map((one) => one.check()))
  }
  const watch = createWatch(connected, options.log)
  return {
    configured,
    on(network) {
      const connected = byName.get(network.name)
      if (connected === undefined) throw fail('chain-not-configured')
      return connected.chain
    },
    health: (network) => byName.get(network.name)?.health(),
    explorerUrl({ name, explorerUrl }) {
      const configured = options.explorerUrls?.[name]
      return configured === undefined ? explorerUrl : configured
    },
    tokenDomainState: (network, token) => byName.get(network.name)?.domains.state(token) ?? 'unchecked',
    check,
    watch: watch.start,
    stop: watch.stop,
  }
}

function connect(options: ChainsOptions, network: Network) {
  const { clock, log, outbound, onNode, rpcTimeoutMs: timeoutMs, wait } = options
  const urls = options.rpcUrls[network.name] ?? []
  const nodes = createNodes({ network: network.name, urls, clock, log, onState: (node) => onNode?.(network, node) })
  const { chainId } = network
  const onUnread = (node: Node | undefined, txHash: unknown): void =>
    log?.warn(
      { network: network.name, node: node?.index, txHash },
      'a node does not deliver a receipt; others are read',
    )
  const lagBlocks = lagBlocksOf(network)
  const rpc = createRpc(outbound, { nodes, chainId, timeoutMs, clock, onUnread, lagBlocks, wait })
  const quorum = createQuorum(network, rpc)
  if (hasSingleNode(network, urls))
    log?.warn(
      { network: network.name },
      'a single node confirms payments of real money; configure at least two nodes of different operators',
    )
  const domains = createTokenDomains(network, (token) => agreedToken(rpc, token), { clock, log })
  return {
    chain: {
      ...createChain(network, rpc),
      ...createQuorumReads({ network, quorum, clock, log, wait: rpc.wait }),
      blocks: { ...createBlockReads(rpc, rpc), ...createTransferReads(network, quorum) },
    } satisfies Chain,
    domains,
    health: () => healthOf(network, { nodes, needed: quorum.needed, domains }),
    async check() {
      await rpc.probe()
      await rpc.compareHeads()
      await domains.check()
    },
  }
}

interface HealthInputs {
  readonly nodes: Nodes
  readonly needed: number
  readonly domains: TokenDomains
}

function healthOf(network: Network, { nodes: { all }, needed, domains }: HealthInputs): ChainHealth {
  const count = (state: NodeState): number => all.filter((node) => node.state === state).length
  const up = count('up')
  return {
    status: up + count('behind') > 0 ? 'up' : count('unchecked') > 0 ? 'unknown' : 'down',
    nodes: all.length,
    up,
    needed,
    money: up + count('unchecked') < needed ? 'waits' : hasSingleNode(network, all) ? 'alone' : 'moves',
    behind: count('behind'),
    suspended: count('suspended'),
    refused: count('refused'),
    wrongTokens: network.tokens.filter((token) => domains.state(token) === 'wrong').map(({ symbol }) => symbol),
  }
}

/** Whether a mainnet has only one node, whose responses no other node confirms. */
function hasSingleNode(network: Network, nodes: readonly unknown[]): boolean {
  return !network.isTestnet && nodes.length === 1
}

interface Checked {
  check(): Promise<void>
  health(): ChainHealth
}

/** Logs once that no network is reachable any more, and once that one is again, as the checks of the networks find it. */
function reportingLoss(all: readonly Checked[], log: Log | undefined): readonly Pick<Checked, 'check'>[] {
  let isLost = false
  return all.map((one) => ({
    async check() {
      try {
        await one.check()
      } finally {
        const wasLost = isLost
        isLost = all.every(({ health }) => health().status === 'down')
        if (isLost && !wasLost)
          log?.error('no network is reachable: no node of any network responds, so no payment is possible')
        if (wasLost && !isLost) log?.info('a network is reachable again')
      }
    },
  }))
}

const watchEveryMs = 2_000

/** Checks the nodes of every network, one loop per network, so that a slow network does not delay the others. */
function createWatch(connected: readonly { check(): Promise<void> }[], log: Log | undefined) {
  let loops: readonly RunningLoop[] = []
  return {
    start() {
      loops = connected.map(({ check }) => {
        const run = async (): Promise<undefined> => void (await check())
        return startLoop({ name: 'chains.watch', everyMs: watchEveryMs, log, run })
      })
    },
    async stop() {
      await Promise.all(loops.map((loop) => loop.stop()))
    },
  }
}

/** As a majority of the nodes reports, since one wrong response would stop payments in the token until the next check. */
function agreedToken({ voters }: NodeRpc, token: TokenInfo) {
  const query = ({ rpc }: Voter) => readToken(rpc, token)
  return requestAgreement(electorateOf(voters), query, (found) => JSON.stringify(found ?? null))
}

async function readToken(rpc: Rpc, token: TokenInfo) {
  const reads = [
    ...domainReads(token.address),
    { method: 'eth_call', params: [{ to: token.address, data: tokenReads.decimals }, 'latest'] },
  ]
  const responses = await rpc.batch(reads)
  const domain = readDomain(responses.slice(0, 3))
  if (domain === undefined) return undefined
  const decimals = returnedBy(responses[3])
  return decimals === undefined ? undefined : { ...domain, decimals: Number(decoded(decodeUint256, decimals)) }
}

interface QuorumOptions {
  readonly network: Network
  readonly quorum: Quorum
  readonly clock: Clock
  readonly log?: Log | undefined
  readonly wait: Wait | undefined
}

/** All reads on which money depends, each confirmed by a quorum of the network's nodes. */
function createQuorumReads({ network, quorum, clock, log, wait }: QuorumOptions): QuorumReads {
  const reads = { ...createReceipts(network, quorum), ...createStates(network, quorum) }
  return {
    ...reads,
    ...createAuthorizationUse({ network, clock, quorum, reads, wait }),
    ...createFirstNonce({ network, quorum, clock, log }),
    ...createSameCall({ network, clock, quorum, wait }),
    ...createTempoReads(network, quorum),
    ...createPermit2Use({ network, clock, quorum }),
  }
}

/** Reads a token's signing domain and decimals; undefined when the contract returns no usable data. Throws when no node answers. */
type ReadToken = (token: TokenInfo) => Promise<(TokenDomain & { readonly decimals: number }) | undefined>

interface TokenDomains {
  state(token: TokenInfo): TokenDomainState
  /** Checks the tokens that are due. Never throws: when a node is down, the states stay as they are and are checked again. */
  check(): Promise<void>
}

/** Time until a token is checked again, by the state that the last check found. */
const checkAgainMs = { right: 3_600_000, wrong: 60_000, unchecked: 0 }

/**
 * Compares the registry's data of tokens that are paid by signature with their contracts. With a wrong name or version, valid payments would be
 * refused or payments accepted that can never be settled; with wrong decimals, amounts would be wrong.
 */
function createTokenDomains(
  network: Network,
  read: ReadToken,
  { clock, log }: { readonly clock: Clock; readonly log: Log | undefined },
): TokenDomains {
  const separators = createDomainSeparators(keccak256)
  const found = new Map<string, { readonly state: TokenDomainState; readonly checkedAtMs: number }>()
  const checkOne = async (token: TokenInfo): Promise<void> => {
    const onChain = await read(token)
    const before = found.get(token.address)?.state
    const isRight =
      onChain !== undefined &&
      onChain.decimals === token.decimals &&
      onChain.separator === bytesToHex(separators.ofToken(network, token))
    found.set(token.address, { state: isRight ? 'right' : 'wrong', checkedAtMs: clock.now().getTime() })
    if (!isRight && before !== 'wrong') logMismatch(log, network, token, onChain)
  }
  return {
    state: (token) => found.get(token.address)?.state ?? 'unchecked',
    async check() {
      const now = clock.now().getTime()
      const due = network.tokens.filter((token) => {
        const known = found.get(token.address)
        return token.eip712 !== null && (known === undefined || known.checkedAtMs + checkAgainMs[known.state] <= now)
      })
      // A token that cannot be checked stays due, and is checked again by the next run.
      await Promise.all(due.map((token) => checkOne(token).catch(() => undefined)))
    },
  }
}

function logMismatch(log: Log | undefined, network: Network, token: TokenInfo, onChain: unknown): void {
  const { symbol, address, eip712: ours, decimals } = token
  log?.error(
    { network: network.name, token: symbol, address, onChain, ours, decimals },
    'a token contract does not match the registry: payments by signature are not offered for it',
  )
}
