import type { Hex } from '@purser/protocol'
import { expect, test } from 'vitest'
import { fail } from '../errors.ts'
import { sendTempo } from '../tempo/node.ts'
import type { NodeRpc, RpcResponse, Voter } from './rpc.ts'
import { send } from './send.ts'

type Reply =
  | 'took it'
  | 'fee too low'
  | 'fee too low, late'
  | 'fee too low, last'
  | 'reverted'
  | 'failed'
  | 'hangs'
  | 'suspended'

const raws: readonly Hex[] = ['0x76', '0x76']
const messages: Partial<Record<Reply, string>> = { 'fee too low': 'transaction underpriced', reverted: 'reverted' }

function answerOf(reply: Reply): RpcResponse {
  const message = messages[reply.startsWith('fee too low') ? 'fee too low' : reply]
  return message === undefined ? { ok: true, result: '0x' } : { ok: false, code: -32_000, message, data: undefined }
}

/** Nodes that reply like this to each transaction. */
function nodesThat(replies: readonly Reply[]): NodeRpc {
  const voters = replies.map((reply) => ({
    node: { state: reply === 'suspended' ? 'suspended' : 'up' },
    rpc: {
      async batch() {
        if (reply === 'hangs') return new Promise(() => undefined)
        if (reply === 'fee too low, late') await new Promise((resolve) => setTimeout(resolve, 900))
        if (reply === 'fee too low, last') await new Promise((resolve) => setTimeout(resolve, 3_700))
        if (reply === 'failed') throw fail('chain-unavailable')
        return raws.map(() => answerOf(reply))
      },
    },
  }))
  return { voters: voters as unknown as readonly Voter[] } as NodeRpc
}

test.concurrent.each<[readonly Reply[], string]>([
  [['fee too low'], 'underpriced'],
  [['fee too low', 'failed'], 'sent'],
  [['fee too low', 'fee too low'], 'underpriced'],
  [['fee too low', 'fee too low, late'], 'underpriced'],
  [['fee too low', 'fee too low, late', 'hangs'], 'underpriced'],
  [['fee too low, last'], 'underpriced'],
  [['took it', 'fee too low, late', 'hangs'], 'sent'],
  [['fee too low', 'hangs', 'hangs'], 'sent'],
  [['fee too low', 'fee too low', 'took it'], 'underpriced'],
  [['fee too low', 'suspended', 'suspended'], 'sent'],
])('nodes that answer %j: %s', async (replies, expected) => {
  const answers = await send(nodesThat(replies), raws)
  expect(answers.map(({ outcome }) => outcome)).toEqual([expected, expected])
})

test.concurrent.each<[readonly Reply[], string]>([
  [['reverted'], 'refused'],
  [['reverted', 'failed'], 'sent'],
  [['reverted', 'reverted'], 'refused'],
  [['reverted', 'failed', 'failed'], 'sent'],
  [['reverted', 'reverted', 'hangs'], 'refused'],
  [['reverted', 'reverted', 'took it'], 'sent'],
  [['reverted', 'hangs', 'took it'], 'sent'],
  [['failed', 'failed', 'failed'], 'sent'],
])('nodes of Tempo that answer %j: %s', async (replies, expected) => {
  const answers = await sendTempo(nodesThat(replies), raws)
  expect(answers.map(({ outcome }) => outcome)).toEqual([expected, expected])
})

test('suspended nodes get the transactions too where the others are no majority', async () => {
  const answers = await sendTempo(nodesThat(['reverted', 'suspended', 'suspended']), raws)
  expect(answers.map(({ outcome }) => outcome)).toEqual(['sent', 'sent'])
})
