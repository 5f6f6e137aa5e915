import { type Network, tokenByAddress } from '@purser/protocol'
import { gather } from '../platform/db/gather.ts'
import { readHoldings } from './holdings.ts'
import type { CallTrial, Chain, Holding, HoldingQuestion, OfferedFees, TriedCall } from './port.ts'
import type { Rpc } from './rpc/rpc.ts'
import { tryEach } from './try-call.ts'

const askedAtOnce = 64
const roundsMax = 4
/** Who asks about more accounts than this has a request of his own. */
const questionsMax = 8

/**
 * What many requests ask of a node at the same moment, in one HTTP request for all of them. Nobody is answered from before he asked: a round
 * begins when those in it have.
 */
export function createTogether(
  rpc: Rpc,
  network: Network,
  readFees: () => Promise<OfferedFees>,
): Pick<Chain, 'holdings' | 'tryCall' | 'offeredFees'> {
  const holdings = gather<readonly HoldingQuestion[], readonly (Holding | Error)[]>(
    { itemsMax: askedAtOnce, roundsMax },
    async (asked) => {
      const all = await readHoldings(rpc, network, asked.flat())
      const starts = asked.map((_, index) => asked.slice(0, index).flat().length)
      return asked.map(({ length }, index) => all.slice(starts[index], (starts[index] ?? 0) + length))
    },
  )
  const tryTogether = gather<TriedCall, CallTrial | Error>({ itemsMax: askedAtOnce, roundsMax }, (calls) =>
    tryEach(rpc, calls),
  )
  const offeredFees = gather<undefined, OfferedFees>({ itemsMax: 1_000, roundsMax: 1 }, async (asked) => {
    const fees = await readFees()
    return asked.map(() => fees)
  })
  return {
    async holdings(questions, blockHash) {
      const isAlone = blockHash !== undefined || questions.length > questionsMax
      const read = await (isAlone ? readHoldings(rpc, network, questions, blockHash) : holdings(questions))
      return read.map(orThrow)
    },
    offeredFees: () => offeredFees(undefined),
    async tryCall(call) {
      // Code that anybody may have written is run alone: a node that takes long over it keeps nobody else waiting.
      const isTokens = tokenByAddress(network, call.to) !== undefined
      const trial = isTokens ? await tryTogether(call) : (await tryEach(rpc, [call]))[0]
      return orThrow(trial ?? new Error('a call that was not tried'))
    },
  }
}

/** What is wrong with one asker's token or call is his alone. */
function orThrow<T>(answer: T | Error): T {
  if (answer instanceof Error) throw answer
  return answer
}
