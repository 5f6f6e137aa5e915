import type { Address, Hex, Network } from '@purser/protocol'
import type { Clock } from '../../platform/clock.ts'
import { fail } from '../errors.ts'
import type { UseSearch } from './port.ts'
import { quantity, readQuantity, resultOf } from './read.ts'
import { isRecord, type Rpc } from './rpc.ts'

/** Default number of blocks per request, until a node refuses that many. */
const blocksMax = 5_000n
/** After this many successful responses in a row, the number of blocks is doubled again. */
const responsesBeforeGrowth = 16

interface LogFilter {
  /** Any contract when omitted. */
  readonly address?: Address | undefined
  readonly topics: readonly (Hex | readonly Hex[])[]
}

export interface LogRange {
  readonly from: bigint
  readonly to: bigint
  /** Most requests to one node. Default: as many as the range needs. */
  readonly requestsMax?: number | undefined
  /** Once it is aborted, no further request is made and its reason is thrown. */
  readonly stopped?: AbortSignal | undefined
}

type RawLog = Readonly<Record<string, unknown>>

/** Reads logs from a node and adapts to the number of blocks that it serves per request. */
export interface LogReader {
  /**
   * Yields the logs in pieces, newest blocks first. Throws `chain-unavailable` when the node refuses even a single block, or after the range's most
   * requests.
   */
  newestFirst(rpc: Rpc, filter: LogFilter, range: LogRange): AsyncGenerator<readonly RawLog[]>
}

/** Remembers the number of blocks that each node served last and starts its next range with it. */
export function createLogReader(): LogReader {
  const pieces = new WeakMap<Rpc, { blocks: bigint; responses: number }>()
  return {
    async *newestFirst(rpc, filter, { from: first, to: last, requestsMax = Number.POSITIVE_INFINITY, stopped }) {
      const piece = pieces.get(rpc) ?? { blocks: blocksMax, responses: 0 }
      pieces.set(rpc, piece)
      let requests = 0
      for (let to = last; to >= first; ) {
        stopped?.throwIfAborted()
        if (requests === requestsMax)
          throw fail('chain-unavailable', {}, new Error(`the logs are not found in ${requestsMax} requests`))
        requests += 1
        const from = to - piece.blocks + 1n > first ? to - piece.blocks + 1n : first
        const logs = await readLogs(rpc, filter, { from, to })
        if (logs instanceof Error) {
          if (from === to) throw logs
          piece.blocks = (to - from + 1n) / 2n
          piece.responses = 0
          continue
        }
        piece.responses += 1
        if (piece.responses % responsesBeforeGrowth === 0 && piece.blocks < blocksMax) piece.blocks *= 2n
        yield logs
        to = from - 1n
      }
    },
  }
}

/** Extra blocks to search, because block times vary. */
const marginBlocks = 5_000n

/** The blocks that can contain something that did not exist at `since`. */
export function searchRange(
  { network, clock }: { readonly network: Network; readonly clock: Clock },
  { to, since, requestsMax }: UseSearch & { readonly to: bigint },
): LogRange {
  const ageMs = Math.max(0, clock.now().getTime() - since.getTime())
  const age = BigInt(Math.ceil(ageMs / network.blockTimeMs)) * 2n + marginBlocks
  return { from: to > age ? to - age : 0n, to, requestsMax }
}

/**
 * The logs, or an error when the node refuses the range. Throws when the node is unreachable or behind the range; one URL may serve several nodes.
 */
async function readLogs(rpc: Rpc, filter: LogFilter, { from, to }: LogRange): Promise<readonly RawLog[] | Error> {
  const range = { fromBlock: quantity(from), toBlock: quantity(to) }
  const [response, height] = await rpc.batch([
    { method: 'eth_getLogs', params: [{ ...filter, ...range }] },
    { method: 'eth_blockNumber', params: [] },
  ])
  if (response?.ok !== true) return fail('chain-unavailable', {}, new Error(`eth_getLogs: ${response?.message}`))
  if (readQuantity(resultOf(height), 'block number') < to)
    throw fail('chain-unavailable', {}, new Error('the node is behind'))
  if (!Array.isArray(response.result))
    throw fail('chain-unavailable', {}, new Error('the node returned no list of logs'))
  return response.result.filter(isRecord)
}
