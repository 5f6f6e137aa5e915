import { setImmediate as turn } from 'node:timers/promises'
import { type Network, networkByName } from '@purser/protocol'
import { expect, test } from 'vitest'
import type { StateQuestion } from './port.ts'
import type { Quorum } from './quorum.ts'
import type { Rpc } from './rpc.ts'
import { createStates } from './states.ts'

const network = networkByName('base-sepolia') as Network

const questionsOf = (count: number) =>
  Array.from({ length: count }, (_, index): StateQuestion => {
    return { account: `0x${index.toString(16).padStart(40, '0')}`, asset: `0x${'1'.repeat(40)}` }
  })

/** Two nodes without a multicall contract, so that each balance is read by a call of its own; each balance is its account's number. */
function aStage() {
  const sent: string[] = []
  let [open, openMost] = [0, 0]
  const aNode = (): Pick<Rpc, 'call' | 'batch'> => ({
    async call(_, params) {
      const [{ data }] = params as [{ readonly data: string }]
      sent.push(data)
      open += 1
      openMost = Math.max(openMost, open)
      await turn()
      open -= 1
      return { ok: true, result: '0x' }
    },
    batch: async (calls) =>
      calls.map(({ params }) => {
        const [{ data }] = params as [{ readonly data: string }]
        return { ok: true, result: `0x${data.slice(-64)}` }
      }),
  })
  const nodes = [aNode()]
  const decision = {
    block: { number: 1n },
    newest: 1n,
    at: '0x1',
    vote: async ({ ask }: { ask(of: unknown): Promise<unknown> }) => (await Promise.all(nodes.map(ask)))[0],
  }
  const { stateAt } = createStates(network, { decide: async () => decision } as unknown as Quorum)
  return { stateAt, sent, nodes, openMost: () => openMost, aNode }
}

test('a large read sends at most seven calls to a node at once, and returns its values in the order of the questions', async () => {
  const { stateAt, openMost } = aStage()
  const { values } = await stateAt(questionsOf(10_000))
  expect(openMost()).toBe(7)
  expect(values).toEqual(Array.from({ length: 10_000 }, (_, index) => BigInt(index)))
})

test('many large reads together send at most sixteen calls to a node at once, and a small one gets its turn among them', async () => {
  const { stateAt, openMost, sent } = aStage()
  let sentBefore = 0
  const large = Array.from({ length: 10 }, () => stateAt(questionsOf(10_000)))
  const small = stateAt(questionsOf(1)).then(() => {
    sentBefore = sent.length
  })
  await Promise.all([...large, small])
  expect([openMost() <= 16, sentBefore < 100, sent.length]).toEqual([true, true, 201])
})

test('the calls of a read are made once for all nodes', async () => {
  const { stateAt, nodes, sent, aNode } = aStage()
  nodes.push(aNode(), aNode())
  let made = 0
  const counted = questionsOf(1_000).map((question) => ({
    ...question,
    get account() {
      made += 1
      return question.account
    },
  }))
  await stateAt(counted as readonly StateQuestion[])
  expect([made, sent.length]).toEqual([1_000, 6])
})

test('a call that fails ends a large read', async () => {
  const { stateAt, nodes, sent, aNode } = aStage()
  nodes[0] = {
    ...aNode(),
    call: async (_, params) => {
      sent.push(String(params))
      throw new Error('down')
    },
  }
  await expect(stateAt(questionsOf(10_000))).rejects.toThrow('down')
  await turn()
  expect(sent.length).toBeLessThanOrEqual(8)
})
