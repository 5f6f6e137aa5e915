import { setImmediate as turn } from 'node:timers/promises'
import { type Network, networkByName } from '@purser/protocol'
import { expect, test } from 'vitest'
import type { StateQuestion } from './port.ts'
import type { Quorum } from './quorum.ts'
import type { Rpc } from './rpc.ts'
import { createStates } from './states.ts'

const network = networkByName('base-sepolia') as Network

test('a large read sends at most eight calls to a node at once, and returns its values in the order of the questions', async () => {
  let [open, openMost] = [0, 0]
  const rpc: Pick<Rpc, 'call' | 'batch'> = {
    async call() {
      open += 1
      openMost = Math.max(openMost, open)
      await turn()
      open -= 1
      // No multicall contract: each balance is read by a call of its own.
      return { ok: true, result: '0x' }
    },
    batch: async (calls) =>
      calls.map(({ params }) => {
        const [{ data }] = params as [{ readonly data: string }]
        return { ok: true, result: `0x${data.slice(-64)}` }
      }),
  }
  const decision = {
    block: { number: 1n },
    newest: 1n,
    at: '0x1',
    vote: ({ ask }: { ask(of: unknown): unknown }) => ask(rpc),
  }
  const { stateAt } = createStates(network, { decide: async () => decision } as unknown as Quorum)
  const questions = Array.from({ length: 10_000 }, (_, index): StateQuestion => {
    return { account: `0x${index.toString(16).padStart(40, '0')}`, asset: `0x${'1'.repeat(40)}` }
  })
  const { values } = await stateAt(questions)
  expect(openMost).toBe(8)
  expect(values).toEqual(questions.map((_, index) => BigInt(index)))
})
