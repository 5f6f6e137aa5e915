import { type Outbound, OutboundError } from '../../platform/outbound.ts'
import { inNodeSpan } from '../../platform/tracing/spans.ts'
import {
  isOfLength,
  isRecord,
  type RpcCall,
  type RpcResponse,
  readResponses,
  TooLarge,
  tooLargeCode,
} from './answers.ts'
import { createListReader } from './list-reader.ts'

/** A longer response to calls of any length is read entry by entry, if it has lists of logs. */
const bytesMax = 1_048_576
/** Most bytes of a response to other calls. */
const otherBytesMax = 8_388_608
/** A transaction of 60 million gas that only writes logs has a receipt of this length. */
const largeBytesMax = 67_108_864
/** A response of more than `bytesMax` may take this many times as long as a shorter one, while no part of it takes longer. */
const largeTimes = 4

/**
 * Sends calls to the node at this address and returns the answers in order. Where it answers one of them at too great length, that is an error of the call for
 * logs and receipts; for other calls it throws `TooLarge`.
 */
export type Request = (url: string, calls: readonly RpcCall[]) => Promise<readonly RpcResponse[]>

/**
 * Requests to nodes. The length of a response depends on what strangers wrote on the chain, so a response that is too large says nothing about the
 * node: the calls are sent again in smaller requests, down to one. Calls that are alike are sent once.
 */
export function createRequests(
  outbound: Outbound,
  { chainId, timeoutMs }: { readonly chainId: number; readonly timeoutMs: number },
): Request {
  let nextId = 1
  const requestOnce: Request = async (url, calls) => {
    const first = nextId
    nextId += calls.length
    const requests = calls.map((call, index) => ({ jsonrpc: '2.0', id: first + index, ...call }))
    const body = JSON.stringify(requests.length === 1 ? requests[0] : requests)
    const methods = calls.map(({ method }) => method)
    const answer = await inNodeSpan(chainId, methods, () =>
      outbound.postJson(url, body, { timeoutMs, ...limitsOf(methods, timeoutMs) }),
    )
    if (calls.length > 1 && isRefusedAsLarge(answer)) throw new OutboundError('too-large')
    return readResponses(Array.isArray(answer) ? answer : [answer], first, calls)
  }
  const requestInParts: Request = async (url, calls) => {
    try {
      return await requestOnce(url, calls)
    } catch (error) {
      if (!isTooLarge(error)) throw error
      if (calls.length === 1) return [unreadable(calls)]
      return inParts(calls, (part) => requestInParts(url, part))
    }
  }
  return async (url, calls) => {
    const { unique, places } = uniqueOf(calls)
    const answers = await requestInParts(url, unique)
    return places.flatMap((place) => answers[place] ?? [])
  }
}

/** The gas of a call: a number, or the data with which the called code reverts, which may have megabytes and is of no use. */
const estimate = 'eth_estimateGas'

/** Calls whose responses have any length, by what strangers wrote on the chain. */
const ofAnyLength = new Set(['eth_getLogs', 'eth_getTransactionReceipt'])

/** The limits of a response. Only a response to calls of any length may take longer: a node that sends others slowly is at fault. */
function limitsOf(methods: readonly string[], timeoutMs: number) {
  if (methods.includes(estimate)) return { bytesMax }
  if (!methods.some((method) => ofAnyLength.has(method))) return { bytesMax: otherBytesMax }
  const large = { bytesMax: largeBytesMax, timeoutMs: largeTimes * timeoutMs, createReader: createListReader }
  return { bytesMax, large }
}

/**
 * The answer to one call that is too large. For logs it is an error of the call: they are then requested in parts. So it is for a receipt, and the others
 * of its request are read. For a gas estimate the call reverts, since only the data of a revert is of any length.
 */
function unreadable(calls: readonly RpcCall[]): RpcResponse {
  const message = 'the response is too large'
  if (calls[0]?.method === estimate)
    return { ok: false, code: 3, message: 'execution reverted: the data is too large', data: undefined }
  if (!ofAnyLength.has(calls[0]?.method ?? '')) throw new TooLarge(message)
  return { ok: false, code: tooLargeCode, message, data: undefined }
}

/** Into how many requests the calls of one are divided. With eight, one long receipt of a hundred is by itself after three requests that fail. */
const partsMost = 8

/** The logs in requests of their own, because they are most often what is too large; otherwise parts of the same size. */
async function inParts(
  calls: readonly RpcCall[],
  request: (part: readonly RpcCall[]) => Promise<readonly RpcResponse[]>,
): Promise<readonly RpcResponse[]> {
  const isOfLogs = ({ method }: RpcCall): boolean => method === 'eth_getLogs'
  const isMixed = calls.some(isOfLogs) && !calls.every(isOfLogs)
  const size = Math.ceil(calls.length / partsMost)
  const partOf = (call: RpcCall, index: number): number =>
    isMixed ? Number(!isOfLogs(call)) : Math.floor(index / size)
  const answers = new Map<RpcCall, RpcResponse>()
  for (const part of Map.groupBy(calls, partOf).values())
    for (const [index, answer] of (await request(part)).entries()) {
      const call = part[index]
      if (call !== undefined) answers.set(call, answer)
    }
  return calls.flatMap((call) => answers.get(call) ?? [])
}

/** Whether a node refused some of several calls because of the length of its response. */
function isRefusedAsLarge(answer: unknown): boolean {
  return (Array.isArray(answer) ? answer : [answer]).some((entry: unknown) => {
    const error = isRecord(entry) ? entry.error : undefined
    return isRecord(error) && isOfLength(error)
  })
}

function isTooLarge(error: unknown): boolean {
  return error instanceof OutboundError && error.kind === 'too-large'
}

/** The calls without repetitions, and for each call the place of its answer. */
function uniqueOf(calls: readonly RpcCall[]): {
  readonly unique: readonly RpcCall[]
  readonly places: readonly number[]
} {
  if (calls.length === 1) return { unique: calls, places: [0] }
  const known = new Map<string, number>()
  const unique: RpcCall[] = []
  const places = calls.map((call) => {
    const key = JSON.stringify([call.method, call.params])
    const place = known.get(key) ?? unique.push(call) - 1
    known.set(key, place)
    return place
  })
  return { unique, places }
}
