import { type Network, tokenByAddress } from '@purser/protocol'
import { batch } from '../platform/db/batch.ts'
import { readHoldings } from './holdings.ts'
import type { CallTrial, Chain, Holding, HoldingQuestion, OfferedFees, TriedCall } from './port.ts'
import type { Rpc } from './rpc/rpc.ts'
import { tryEach } from './try-call.ts'

const requestedAtOnce = 64
const roundsMax = 4
/** A call about more accounts than this gets its own request. */
const questionsMax = 8

/**
 * Reads that combine concurrent calls into one HTTP request to a node. A batch starts after all of its calls, so no caller gets an answer that is
 * older than its call.
 */
export function createBatchedReads(
  rpc: Rpc,
  network: Network,
  readFees: () => Promise<OfferedFees>,
): Pick<Chain, 'holdings' | 'tryCall' | 'offeredFees'> {
  const holdings = batch<readonly HoldingQuestion[], readonly (Holding | Error)[]>(
    { itemsMax: requestedAtOnce, batchesMax: roundsMax },
    async (requested) => {
      const all = await readHoldings(rpc, network, requested.flat())
      const starts = requested.map((_, index) => requested.slice(0, index).flat().length)
      return requested.map(({ length }, index) => all.slice(starts[index], (starts[index] ?? 0) + length))
    },
  )
  const tryBatched = batch<TriedCall, CallTrial | Error>(
    { itemsMax: requestedAtOnce, batchesMax: roundsMax },
    (calls) => tryEach(rpc, calls),
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
    async tryCall(call) {
      // An untrusted contract gets its own request, so that slow code does not delay other calls.
      const isTokens = tokenByAddress(network, call.to) !== undefined
      const trial = isTokens ? await tryBatched(call) : (await tryEach(rpc, [call]))[0]
      return orThrow(trial ?? new Error('the node returned no result for a call'))
    },
  }
}

/** Throws when the answer is an error. An error for one token or call affects only its caller. */
function orThrow<T>(answer: T | Error): T {
  if (answer instanceof Error) throw answer
  return answer
}
