import { type Hex, isHex } from '@purser/protocol'
import type { Outbound } from '../platform/outbound.ts'
import { fail } from './errors.ts'

/** What a node answered to one call: a result, or an error of the call itself (a revert, a refused transaction). */
export type RpcAnswer =
  | { readonly ok: true; readonly result: unknown }
  | { readonly ok: false; readonly code: number; readonly message: string; readonly data: Hex | undefined }

export interface RpcCall {
  readonly method: string
  readonly params: readonly unknown[]
}

export interface Rpc {
  /** One HTTP request for all calls; the answers in their order. Throws `chain-unavailable` when no node answers usefully. */
  batch(calls: readonly RpcCall[]): Promise<readonly RpcAnswer[]>
  call(method: string, params: readonly unknown[]): Promise<RpcAnswer>
  /** The result; an error of the call is `chain-unavailable` too. */
  result(method: string, params: readonly unknown[]): Promise<unknown>
}

const bytesMax = 8_388_608

export interface RpcOptions {
  /** Tried in order, beginning with the one that answered last. */
  readonly urls: readonly string[]
  readonly chainId: number
  readonly timeoutMs: number
}

/**
 * JSON-RPC 2.0 over HTTP to the nodes of one network, tried in order. A node may be late, dead or lying: an answer that
 * is not exactly what was asked for (ids, count, shape, size) is no answer, and the next node is asked. A node of another
 * chain is never used: play money would pay for real things.
 */
export function createRpc(outbound: Outbound, { urls, chainId, timeoutMs }: RpcOptions): Rpc {
  let nextId = 1
  let preferred = 0
  const ofOurChain = new Set<string>()
  const ask = async (url: string, calls: readonly RpcCall[]): Promise<readonly RpcAnswer[]> => {
    const first = nextId
    nextId += calls.length
    const requests = calls.map((call, index) => ({ jsonrpc: '2.0', id: first + index, ...call }))
    const body = JSON.stringify(requests.length === 1 ? requests[0] : requests)
    const answer = await outbound.postJson(url, body, { timeoutMs, bytesMax })
    return readAnswers(Array.isArray(answer) ? answer : [answer], first, calls.length)
  }
  const refuseOtherChain = async (url: string): Promise<void> => {
    if (ofOurChain.has(url)) return
    const [answer] = await ask(url, [{ method: 'eth_chainId', params: [] }])
    if (answer?.ok !== true || answer.result !== `0x${chainId.toString(16)}`)
      throw new Error(`the node is not of chain ${chainId}`)
    ofOurChain.add(url)
  }
  const batch = async (calls: readonly RpcCall[]): Promise<readonly RpcAnswer[]> => {
    if (calls.length === 0) return []
    let last: unknown
    for (let tried = 0; tried < urls.length; tried++) {
      const index = (preferred + tried) % urls.length
      const url = urls[index] ?? ''
      try {
        await refuseOtherChain(url)
        const answers = await ask(url, calls)
        preferred = index
        return answers
      } catch (error) {
        last = error
      }
    }
    throw fail('chain-unavailable', {}, last)
  }
  const call = async (method: string, params: readonly unknown[]): Promise<RpcAnswer> => {
    const [answer] = await batch([{ method, params }])
    if (answer === undefined) throw fail('chain-unavailable', {}, new Error('no answer'))
    return answer
  }
  return {
    batch,
    call,
    async result(method, params) {
      const answer = await call(method, params)
      if (!answer.ok) throw fail('chain-unavailable', {}, new Error(`${method}: ${answer.message}`))
      return answer.result
    },
  }
}

/** JSON-RPC error codes that speak of the node and not of the call: limits, resources, a missing method. */
const nodeFaults = new Set([-32_700, -32_600, -32_601, -32_005, -32_002, -32_001, 429])

function readAnswers(entries: readonly unknown[], first: number, count: number): readonly RpcAnswer[] {
  if (entries.length !== count) throw new Error('the node answered another number of calls')
  const answers: (RpcAnswer | undefined)[] = Array.from({ length: count }, () => undefined)
  for (const entry of entries) {
    if (!isRecord(entry) || typeof entry.id !== 'number') throw new Error('the node answered without an id')
    const index = entry.id - first
    if (index < 0 || index >= count || answers[index] !== undefined)
      throw new Error('the node answered a call that was not made')
    answers[index] = readAnswer(entry)
  }
  return answers.map((answer) => {
    if (answer === undefined) throw new Error('the node left a call unanswered')
    return answer
  })
}

function readAnswer(entry: Readonly<Record<string, unknown>>): RpcAnswer {
  if (!isRecord(entry.error)) {
    if (!('result' in entry)) throw new Error('the node answered neither a result nor an error')
    return { ok: true, result: entry.result }
  }
  const { code, message, data } = entry.error
  if (typeof code !== 'number' || nodeFaults.has(code))
    throw new Error(`the node could not serve the call: ${String(code)}`)
  const revert =
    typeof data === 'string' ? data : isRecord(data) && typeof data.data === 'string' ? data.data : undefined
  return {
    ok: false,
    code,
    message: typeof message === 'string' ? message.slice(0, 1_024) : '',
    data: revert !== undefined && isHex(revert) ? revert : undefined,
  }
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
