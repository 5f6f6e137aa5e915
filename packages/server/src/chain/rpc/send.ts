import type { Hex } from '@purser/protocol'
import { pause } from '../../platform/work/loop.ts'
import type { SendAnswer } from '../port.ts'
import type { NodeRpc, RpcAnswer, RpcCall, Voter } from './rpc.ts'

/** Raw transactions in one request, and their digits: each may be some hundred kilobytes. */
const sendsPerRequest = 64
const digitsPerRequest = 400_000

/**
 * Hands signed transactions to every node that answers, in their order, so that no node that drops them delays them. Returns for each what
 * most nodes answered.
 */
export async function send(rpc: NodeRpc, raws: readonly Hex[]): Promise<SendAnswer[]> {
  const outcomes: SendAnswer[] = []
  while (outcomes.length < raws.length) {
    const part = nextPart(raws.slice(outcomes.length))
    const answers = await sendToEach(
      rpc,
      part.map((raw) => ({ method: 'eth_sendRawTransaction', params: [raw] })),
    )
    outcomes.push(...part.map((_, index) => mostFrequent(answers.map((own) => sendAnswer(own[index])))))
  }
  return outcomes
}

/** As many as one request carries, one at least. */
function nextPart(raws: readonly Hex[]): readonly Hex[] {
  let digits = 0
  const end = raws.findIndex((raw, index) => {
    digits += raw.length
    return index > 0 && (index === sendsPerRequest || digits > digitsPerRequest)
  })
  return end === -1 ? raws : raws.slice(0, end)
}

/** After the first answer the others have so long; what comes later changes nothing. */
const lateMsMax = 500

/** The answers of every node that answers, in no order. */
export async function sendToEach({ voters }: NodeRpc, calls: readonly RpcCall[]): Promise<readonly RpcAnswer[][]> {
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

/** Nodes that rest are used only where no other is there. */
function receivers(voters: readonly Voter[]): readonly Voter[] {
  const usable = voters.filter(({ node: { state } }) => state !== 'refused')
  const answering = usable.filter(({ node: { state } }) => state !== 'resting')
  return answering.length > 0 ? answering : usable
}

/** Words of the several clients for the same few things. What is not in the list may have been sent: never a refusal. */
const sendWords: readonly (readonly [RegExp, SendAnswer['outcome']])[] = [
  [/already known|already imported|known transaction|already exists/i, 'sent'],
  [/nonce too low|nonce is too low|invalid nonce|oldnonce/i, 'nonce-too-low'],
  [/underpriced|fee too low|max fee per gas less than block base fee/i, 'underpriced'],
  [
    /insufficient funds|intrinsic gas|exceeds block gas limit|invalid chain|invalid sender|gas limit (is )?too high|exceeds the configured cap|tx type not supported/i,
    'refused',
  ],
]

/** No answer at all may mean that it was sent and the answer lost. */
function sendAnswer(answer: RpcAnswer | undefined): SendAnswer {
  if (answer === undefined || answer.ok) return { outcome: 'sent' }
  const outcome = sendWords.find(([pattern]) => pattern.test(answer.message))?.[1] ?? 'sent'
  return outcome === 'sent' ? { outcome } : { outcome, words: answer.message }
}

/** Which of several outcomes that are equally frequent counts: a refusal is looked into; a higher fee is not offered at the word of one of two. */
const precedence: readonly SendAnswer['outcome'][] = ['refused', 'sent', 'underpriced', 'nonce-too-low']

function mostFrequent(answers: readonly SendAnswer[]): SendAnswer {
  const groups = precedence.map((outcome) => answers.filter((answer) => answer.outcome === outcome))
  const [first] = groups.reduce((most, group) => (group.length > most.length ? group : most), [])
  return first ?? { outcome: 'sent' }
}
