import { type Network, tokenByAddress } from '@purser/protocol'
import { batch } from '../../platform/db/batch.ts'
import type { Chain, Holding, HoldingQuestion, OfferedFees, TriedCall } from '../port.ts'
import { electorateOf } from '../rpc/acceptance.ts'
import type { NodeRpc, Rpc } from '../rpc/rpc.ts'
import { type NodeTrial, requestTrial, tryEach } from './call-trials.ts'
import { readHoldings } from './holdings.ts'

const requestedAtOnce = 64
const batchesMax = 4
/** A call about more accounts than this gets its own request. */
const questionsMax = 8

/**
 * Reads that combine concurrent calls into one HTTP request to a node. A batch starts after all of its calls, so no caller gets a response that is
 * older than its call.
 */
export function createBatchedReads(
  rpc: Rpc & NodeRpc,
  network: Network,
  readFees: () => Promise<OfferedFees>,
): Pick<Chain, 'holdings' | 'tryCall' | 'offeredFees'> {
  const holdings = batchHoldings(rpc, network)
  const tryBatched = new Map(
    rpc.voters.map((voter) => {
      const limits = { itemsMax: requestedAtOnce, batchesMax }
      return [voter, batch<TriedCall, NodeTrial | Error>(limits, (calls) => tryEach(voter.rpc, calls))]
    }),
  )
  const offeredFees = batch<undefined, OfferedFees>({ itemsMax: 1_000, batchesMax: 1 }, async (requested) => {
    const fees = await readFees()
    return requested.map(() => fees)
  })
  return {
    async holdings(questions, blockHash) {
      const isAlone = blockHash !== undefined || questions.length > questionsMax
      const read = await (isAlone ? readHoldings(rpc, network, questions, blockHash) : holdings(questions))
      return read.map(orThrow)
    },
    offeredFees: () => offeredFees(undefined),
    tryCall(call) {
      // An untrusted contract gets its own request, so that slow code does not delay other calls.
      const isTokens = tokenByAddress(network, call.to) !== undefined
      return requestTrial(network, electorateOf(rpc.voters), async (voter) => {
        const trial = isTokens ? await tryBatched.get(voter)?.(call) : (await tryEach(voter.rpc, [call]))[0]
        return orThrow(trial ?? new Error('the node returned no result for a call'))
      })
    },
  }
}

/** Reads the holdings that concurrent callers request in one call, and returns each caller's own. */
function batchHoldings(
  rpc: Rpc & NodeRpc,
  network: Network,
): (questions: readonly HoldingQuestion[]) => Promise<readonly (Holding | Error)[]> {
  return batch({ itemsMax: requestedAtOnce, batchesMax }, async (requested) => {
    const all = await readHoldings(rpc, network, requested.flat())
    const starts = requested.map((_, index) => requested.slice(0, index).flat().length)
    return requested.map(({ length }, index) => all.slice(starts[index], (starts[index] ?? 0) + length))
  })
}

/** Throws when the response is an error. An error for one token or call affects only its caller. */
function orThrow<T>(response: T | Error): T {
  if (response instanceof Error) throw response
  return response
}
