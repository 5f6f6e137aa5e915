import type { Hex } from '@purser/protocol'
import { pause } from '../../platform/work/loop.ts'
import type { SendAnswer } from '../port.ts'
import type { NodeRpc, RpcAnswer, RpcCall, Voter } from './rpc.ts'

/** Most raw transactions in one request, and most hexadecimal digits. A transaction may be several hundred kilobytes. */
const sendsPerRequest = 64
const digitsPerRequest = 400_000

/**
 * Sends signed transactions, in order, to every node that answers, so that a node that drops them does not delay them. Returns the most frequent
 * answer for each.
 */
export async function send(rpc: NodeRpc, raws: readonly Hex[]): Promise<SendAnswer[]> {
  return (await sendAll(rpc, raws)).map((answers) => mostFrequent(answers.map(sendAnswer)))
}

/** As `send`, but returns the answers of the nodes for each transaction, in no particular order. A node that did not answer has none. */
export async function sendAll(rpc: NodeRpc, raws: readonly Hex[]): Promise<readonly (RpcAnswer | undefined)[][]> {
  const outcomes: (RpcAnswer | undefined)[][] = []
  while (outcomes.length < raws.length) {
    const part = nextPart(raws.slice(outcomes.length))
    const answers = await sendToEach(
      rpc,
      part.map((raw) => ({ method: 'eth_sendRawTransaction', params: [raw] })),
    )
    outcomes.push(...part.map((_, index) => answers.map((own) => own[index])))
  }
  return outcomes
}

/** As many transactions as fit into one request; at least one. */
function nextPart(raws: readonly Hex[]): readonly Hex[] {
  let digits = 0
  const end = raws.findIndex((raw, index) => {
    digits += raw.length
    return index > 0 && (index === sendsPerRequest || digits > digitsPerRequest)
  })
  return end === -1 ? raws : raws.slice(0, end)
}

/** How long to wait for other nodes after the first answer. Later answers are ignored. */
const lateMsMax = 500

/** The answers of all nodes that answer, in no particular order. */
async function sendToEach({ voters }: NodeRpc, calls: readonly RpcCall[]): Promise<readonly RpcAnswer[][]> {
  const answers: RpcAnswer[][] = []
  const first = Promise.withResolvers<void>()
  const all = Promise.all(
    receivers(voters).map(async ({ rpc }) => {
      const own = await rpc.batch(calls).catch(() => undefined)
      if (own === undefined) return
      answers.push([...own])
      first.resolve()
    }),
  )
  await Promise.race([all, first.promise])
  const waiting = new AbortController()
  await Promise.race([all, pause(lateMsMax, waiting.signal)])
  waiting.abort()
  return [...answers]
}

/** Suspended nodes are used only when there is no other. */
function receivers(voters: readonly Voter[]): readonly Voter[] {
  const usable = voters.filter(({ node: { state } }) => state !== 'refused')
  const answering = usable.filter(({ node: { state } }) => state !== 'resting')
  return answering.length > 0 ? answering : usable
}

/**
 * Error messages of the different node clients. A message that is not listed may mean that the transaction was sent, so it never counts as a
 * refusal.
 */
const sendMessages: readonly (readonly [RegExp, SendAnswer['outcome']])[] = [
  [/already known|already imported|known transaction|already exists/i, 'sent'],
  [/nonce too low|nonce is too low|invalid nonce|oldnonce/i, 'nonce-too-low'],
  [/underpriced|fee too low|max fee per gas less than block base fee/i, 'underpriced'],
  [
    /insufficient funds|intrinsic gas|exceeds block gas limit|invalid chain|invalid sender|gas limit (is )?too high|exceeds the configured cap|tx type not supported/i,
    'refused',
  ],
]

/** A missing answer counts as sent: the transaction may have been sent and the answer lost. */
function sendAnswer(answer: RpcAnswer | undefined): SendAnswer {
  if (answer === undefined || answer.ok) return { outcome: 'sent' }
  const outcome = sendMessages.find(([pattern]) => pattern.test(answer.message))?.[1] ?? 'sent'
  return outcome === 'sent' ? { outcome } : { outcome, words: answer.message }
}

/** Breaks ties between equally frequent outcomes. A refusal is followed up; one node of two cannot cause a higher fee. */
const precedence: readonly SendAnswer['outcome'][] = ['refused', 'sent', 'underpriced', 'nonce-too-low']

function mostFrequent(answers: readonly SendAnswer[]): SendAnswer {
  const groups = precedence.map((outcome) => answers.filter((answer) => answer.outcome === outcome))
  const [first] = groups.reduce((most, group) => (group.length > most.length ? group : most), [])
  return first ?? { outcome: 'sent' }
}
