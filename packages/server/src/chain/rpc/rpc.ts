import type { Clock } from '../../platform/clock.ts'
import { isProblem } from '../../platform/errors.ts'
import type { Outbound } from '../../platform/outbound.ts'
import { fail } from '../errors.ts'
import type { Node, Nodes } from './nodes.ts'
import { readQuantity } from './read.ts'
import { createRequests } from './requests.ts'
import { isOfLength, isRecord, NotServed, type RpcCall, type RpcResponse, TooLarge } from './responses.ts'

export { isRecord, type RpcCall, type RpcResponse } from './responses.ts'

export interface Rpc {
  /**
   * Sends all calls in one HTTP request, or in several to the same node where the response is too large, and returns the responses in order. Throws `chain-unavailable` when no node gives a valid response.
   */
  batch(calls: readonly RpcCall[]): Promise<readonly RpcResponse[]>
  call(method: string, params: readonly unknown[]): Promise<RpcResponse>
  /** The result. Throws `chain-unavailable` for an error of the call too. */
  result(method: string, params: readonly unknown[]): Promise<unknown>
  /**
   * Runs reads that must come from one node, since nodes may be at different heads. When the node fails or returns an invalid response, the work is
   * repeated with the next node.
   */
  onOneNode<T>(work: (rpc: Rpc) => Promise<T>): Promise<T>
}

/** One node, and an `Rpc` that queries only this node. */
export interface Voter {
  readonly node: Node
  readonly rpc: Rpc
}

/** Waits for late nodes, so long at most, or until the signal is aborted. Default: by the clock of the process. */
export type Wait = (ms: number, stopped: AbortSignal) => Promise<void>

/** Operations on individual nodes. */
export interface NodeRpc {
  /** Every configured node. */
  readonly voters: readonly Voter[]
  readonly wait?: Wait | undefined
  /** Suspends a node that contradicts the majority. */
  suspend(node: Node): void
  /** Reports a node that denies what another one has, where no majority decides. */
  reportDenial?(node: Node): void
  /** Checks the chain ID of the nodes that are due. Never throws. */
  probe(): Promise<void>
  /** Compares the heads of all nodes that answer and marks those that are behind. Does nothing for a single node. Never throws. */
  compareHeads(): Promise<void>
  /** The highest block that a majority of the nodes had at the last comparison of their heads; 0 if too few answered. */
  agreedHead(): bigint
}

export interface RpcOptions {
  readonly nodes: Nodes
  readonly chainId: number
  readonly timeoutMs: number
  readonly clock: Clock
  /** Called when a node does not deliver a receipt by itself, at most once in ten minutes for each. */
  readonly onUnread?: (node: Node | undefined, hash: unknown) => void
  /** A node whose head is behind by more than this many blocks is not preferred. */
  readonly lagBlocks: bigint
  readonly wait?: Wait | undefined
}

type Ask = (node: Node, calls: readonly RpcCall[]) => Promise<readonly RpcResponse[]>

/**
 * JSON-RPC 2.0 over HTTP to the nodes of one network. A node may be slow, down or wrong: a response that does not match the request exactly (ids,
 * count, shape, size) is rejected, and the next node is queried. A node with another chain ID is never used; otherwise test tokens could pay for
 * real goods.
 */
export function createRpc(outbound: Outbound, options: RpcOptions): Rpc & NodeRpc {
  const { nodes, chainId, lagBlocks } = options
  const onUnread = (url: string, hash: unknown): void =>
    options.onUnread?.(
      nodes.all.find((node) => node.url === url),
      hash,
    )
  const request = createRequests(outbound, { ...options, onUnread })
  const ask: Ask = ({ url }, calls) => request(url, calls)
  const refuseOtherChain = async (node: Node): Promise<void> => {
    const [response] = await ask(node, [{ method: 'eth_chainId', params: [] }])
    if (response?.ok !== true || typeof response.result !== 'string') throw new Error('the node returned no chain ID')
    if (response.result !== `0x${chainId.toString(16)}`) {
      nodes.markRefused(node)
      throw new NotServed(`the node does not serve chain ${chainId}`)
    }
  }
  const askChecked: Ask = async (node, calls) => {
    try {
      if (node.state !== 'up' && node.state !== 'behind') await refuseOtherChain(node)
      const responses = await ask(node, calls)
      nodes.markUp(node)
      return responses
    } catch (error) {
      if (!(error instanceof NotServed)) nodes.markFailed(node, error)
      throw error
    }
  }
  const rpcOf = (node: Node): Rpc => {
    const rpc: Rpc = {
      ...methodsOf(async (calls) => (calls.length === 0 ? [] : askChecked(node, calls).catch(unavailable))),
      onOneNode: (work) => work(rpc),
    }
    return rpc
  }
  const voters = nodes.all.map((node) => ({ node, rpc: rpcOf(node) }))
  let agreedHead = 0n
  return {
    ...methodsOf(async (calls) =>
      calls.length === 0 ? [] : onFirst(nodes, async (node) => refuseUnread(calls, await askChecked(node, calls))),
    ),
    onOneNode: (work) => onFirst(nodes, (node) => work(rpcOf(node))),
    voters,
    wait: options.wait,
    suspend: nodes.markDissenting,
    reportDenial: nodes.reportDenial,
    async probe() {
      await Promise.all(
        nodes.toProbe().map(async (node) => {
          await refuseOtherChain(node).then(
            () => nodes.markUp(node),
            (error: unknown) => error instanceof NotServed || nodes.markFailed(node, error),
          )
        }),
      )
    },
    async compareHeads() {
      const answering = voters.filter(({ node: { state } }) => state === 'up' || state === 'behind')
      if (answering.length < 2) return
      const heads = await Promise.all(
        answering.map(({ node, rpc }) =>
          headOf(rpc).then(
            (head) => [{ node, head }],
            () => [],
          ),
        ),
      )
      nodes.compareHeads(heads.flat(), lagBlocks)
      const highestFirst = heads
        .flatMap((found) => found.map(({ head }) => head))
        .toSorted((one, other) => (one > other ? -1 : 1))
      agreedHead = highestFirst[Math.floor(voters.length / 2)] ?? 0n
    },
    agreedHead: () => agreedHead,
  }
}

/** Works on one node after the other until one succeeds. Throws the last fault. */
async function onFirst<T>(nodes: Nodes, work: (node: Node) => Promise<T>): Promise<T> {
  let last: unknown = new Error('every node reports another chain ID')
  const tooLong: Node[] = []
  for (const node of nodes.inOrder()) {
    try {
      const found = await work(node)
      for (const other of tooLong)
        nodes.markFailed(other, new Error('its response is too large, unlike that of another'))
      return found
    } catch (error) {
      if (isTooLarge(error)) tooLong.push(node)
      // Other problems are thrown by the work itself and are not the node's fault.
      if (isProblem(error) && error.code !== 'chain-unavailable') throw error
      last = error
    }
  }
  throw isProblem(last) ? last : fail('chain-unavailable', {}, last)
}

/** Throws `TooLarge` where the node does not return a receipt because of its length: another node may. */
function refuseUnread(calls: readonly RpcCall[], responses: readonly RpcResponse[]): readonly RpcResponse[] {
  const isUnread = (response: RpcResponse, index: number): boolean =>
    !response.ok && calls[index]?.method === 'eth_getTransactionReceipt' && isOfLength(response)
  if (responses.some(isUnread)) throw new TooLarge('the response is too large')
  return responses
}

function isTooLarge(error: unknown): boolean {
  return error instanceof TooLarge || (isProblem(error) && error.cause instanceof TooLarge)
}

/** The lower of the two heads that a node reports, in case it updates one of them late. */
async function headOf(rpc: Rpc): Promise<bigint> {
  const [number, block] = await rpc.batch([
    { method: 'eth_blockNumber', params: [] },
    { method: 'eth_getBlockByNumber', params: ['latest', false] },
  ])
  const heads = [number, block].map((response) => {
    const result = response?.ok === true ? response.result : undefined
    return readQuantity(isRecord(result) ? result.number : result, 'head')
  })
  return heads.reduce((lower, head) => (head < lower ? head : lower))
}

function unavailable(error: unknown): never {
  throw fail('chain-unavailable', {}, error)
}

function methodsOf(batch: Rpc['batch']): Omit<Rpc, 'onOneNode'> {
  const call = async (method: string, params: readonly unknown[]): Promise<RpcResponse> => {
    const [response] = await batch([{ method, params }])
    if (response === undefined) throw fail('chain-unavailable', {}, new Error('no answer'))
    return response
  }
  return {
    batch,
    call,
    async result(method, params) {
      const response = await call(method, params)
      if (!response.ok) throw fail('chain-unavailable', {}, new Error(`${method}: ${response.message}`))
      return response.result
    },
  }
}
