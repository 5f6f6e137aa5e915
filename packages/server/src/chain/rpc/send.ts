import type { Hex } from '@purser/protocol'
import { pause } from '../../platform/work/loop.ts'
import type { SendResponse } from '../port.ts'
import { electorateOf } from './acceptance.ts'
import type { NodeRpc, RpcCall, RpcResponse, Voter, Wait } from './rpc.ts'

/** Most raw transactions in one request, and most hexadecimal digits. A transaction may be several hundred kilobytes. */
const sendsPerRequest = 64
const digitsPerRequest = 400_000

/**
 * Sends signed transactions, in order, to every node that answers, so that a node that drops them does not delay them. Returns the most frequent
 * response for each; `underpriced` only where a majority of the configured nodes answers so, since each such response raises the fee. After one such answer it
 * waits for those of the other nodes, but not for long.
 */
export async function send(rpc: NodeRpc, raws: readonly Hex[]): Promise<SendResponse[]> {
  const { needed } = electorateOf(rpc.voters)
  const isDecided = (responses: readonly RpcResponse[]) =>
    responses.length >= needed || responses.some((response) => sendResponse(response).outcome !== 'underpriced')
  const sent = await sendAll(rpc, raws, isDecided, undecidedMsMax)
  return sent.map((responses) => mostFrequent(responses.map(sendResponse), needed))
}

/** Whether these responses of nodes to one transaction decide about it, so that no further response is needed. */
type IsDecided = (responses: readonly RpcResponse[]) => boolean

/**
 * As `send`, but returns the responses of the nodes for each transaction, in no particular order. A node that did not answer has none. Waits until
 * the responses decide about each transaction, or until no further response can come, and at most `waitMsMax` after the first one if it is given.
 */
export async function sendAll(
  rpc: NodeRpc,
  raws: readonly Hex[],
  isDecided: IsDecided,
  waitMsMax?: number,
): Promise<RpcResponse[][]> {
  const outcomes: RpcResponse[][] = []
  while (outcomes.length < raws.length) {
    const part = nextPart(raws.slice(outcomes.length))
    const calls = part.map((raw) => ({ method: 'eth_sendRawTransaction', params: [raw] }))
    outcomes.push(...(await sendToEach(rpc, calls, { isDecided, waitMsMax })))
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

/** Milliseconds to wait, from the first response, for those that decide whether a fee is too low. */
const undecidedMsMax = 3_000
/** Milliseconds to wait for other nodes after the responses that decide. Later responses are ignored. */
const lateMsMax = 500

/** For each call the responses of all nodes that answer, in no particular order. */
async function sendToEach(
  { voters, wait }: NodeRpc,
  calls: readonly RpcCall[],
  { isDecided, waitMsMax }: { readonly isDecided: IsDecided; readonly waitMsMax: number | undefined },
): Promise<RpcResponse[][]> {
  const responses: RpcResponse[][] = calls.map(() => [])
  const answered = Promise.withResolvers<void>()
  const decided = Promise.withResolvers<void>()
  const all = Promise.all(
    receivers(voters).map(async ({ rpc }) => {
      const own = await rpc.batch(calls).catch(() => [])
      for (const [index, response] of own.entries()) responses[index]?.push(response)
      if (own.length === 0) return
      answered.resolve()
      if (responses.every(isDecided)) decided.resolve()
    }),
  )
  await Promise.race([all, answered.promise])
  await within(waitMsMax, Promise.race([all, decided.promise]), wait)
  await within(lateMsMax, all, wait)
  return responses.map((some) => [...some])
}

/** Waits for the work, at most this long. */
async function within(ms: number | undefined, work: Promise<unknown>, wait: Wait = pause): Promise<void> {
  if (ms === undefined) return void (await work)
  const waiting = new AbortController()
  await Promise.race([work, wait(ms, waiting.signal)])
  waiting.abort()
}

/** Suspended nodes are used only when the others are too few to decide. */
function receivers(voters: readonly Voter[]): readonly Voter[] {
  const usable = voters.filter(({ node: { state } }) => state !== 'refused')
  const answering = usable.filter(({ node: { state } }) => state !== 'suspended')
  return answering.length >= electorateOf(voters).needed ? answering : usable
}

/**
 * Error messages of the different node clients. A message that is not listed may mean that the transaction was sent, so it never counts as a
 * refusal.
 */
const sendMessages: readonly (readonly [RegExp, SendResponse['outcome']])[] = [
  [/already known|already imported|known transaction|already exists/i, 'sent'],
  [/nonce too low|nonce is too low|invalid nonce|oldnonce/i, 'nonce-too-low'],
  [/underpriced|fee too low|max fee per gas less than block base fee/i, 'underpriced'],
  [
    /insufficient funds|intrinsic gas|exceeds block gas limit|invalid chain|invalid sender|gas limit (is )?too high|exceeds the configured cap|tx type not supported/i,
    'refused',
  ],
]

function sendResponse(response: RpcResponse): SendResponse {
  if (response.ok) return { outcome: 'sent' }
  const outcome = sendMessages.find(([pattern]) => pattern.test(response.message))?.[1] ?? 'sent'
  return outcome === 'sent' ? { outcome } : { outcome, words: response.message }
}

/** Breaks ties between equally frequent outcomes. A refusal is followed up; one node of two cannot cause a higher fee. */
const precedence: readonly SendResponse['outcome'][] = ['refused', 'sent', 'underpriced', 'nonce-too-low']

/** A missing response counts as sent: the transaction may have been sent and the response lost. */
function mostFrequent(responses: readonly SendResponse[], needed: number): SendResponse {
  const groups = precedence.map((outcome) => responses.filter((response) => response.outcome === outcome))
  const most = groups.reduce((longest, group) => (group.length > longest.length ? group : longest), [])
  const [first = { outcome: 'sent' }] = most
  return first.outcome === 'underpriced' && most.length < needed ? { outcome: 'sent' } : first
}
