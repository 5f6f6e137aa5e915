import type { Clock } from '../../platform/clock.ts'
import { type JsonLimits, type Outbound, OutboundError } from '../../platform/outbound.ts'
import { inNodeSpan } from '../../platform/tracing/spans.ts'
import { createListReader } from './list-reader.ts'
import { createLongReceipts } from './long-receipts.ts'
import {
  isOfLength,
  isRecord,
  type RpcCall,
  type RpcResponse,
  readResponses,
  TooLarge,
  tooLargeCode,
} from './responses.ts'

/** A longer response to calls of any length is read entry by entry, if it has lists of logs. */
const bytesMax = 1_048_576
/** Most bytes of a response to other calls. */
const otherBytesMax = 8_388_608
/** A transaction of 60 million gas that only writes logs has a receipt of this length. */
const largeBytesMax = 67_108_864
/** Most bytes of the response to a part of a request that was too large. A call with a longer one is then requested by itself. */
const shortBytesMax = 524_288
/** A response of more than `bytesMax` may take this many times as long as a shorter one, while no part of it takes longer. */
const largeTimes = 4
/** Parts of a request, and then calls by themselves, are begun for this many times the limit of a response. */
const dividingTimes = 4

/**
 * Sends calls to the node at this address and returns the responses in order. If a response is too large, a call for logs or receipts
 * gets an error, and another call throws `TooLarge`.
 */
export type Request = (url: string, calls: readonly RpcCall[]) => Promise<readonly RpcResponse[]>

interface RequestOptions {
  readonly chainId: number
  readonly timeoutMs: number
  readonly clock: Clock
  /** Called when a node does not deliver a receipt by itself, at most once in ten minutes for each. */
  readonly onUnread?: (url: string, hash: unknown) => void
}

/** A request with the responses that have arrived. */
interface Reading {
  readonly url: string
  readonly responses: Map<RpcCall, RpcResponse>
  /** No further part begins later. */
  readonly untilMs: number
}

/**
 * Returns the function that sends JSON-RPC requests to nodes. Anybody can write long logs to the chain, so a response that is too large is not a
 * fault of the node: its calls are sent again in smaller batches. Short responses are read first, and long ones by themselves, for a limited time. A receipt that does not arrive is not
 * requested from that node again for ten minutes. Calls that are alike are sent once.
 */
export function createRequests(outbound: Outbound, options: RequestOptions): Request {
  const { chainId, timeoutMs, clock } = options
  const receipts = createLongReceipts(clock, options.onUnread)
  const nowMs = (): number => clock.now().getTime()
  const endOfDivision = (): number => nowMs() + dividingTimes * timeoutMs
  let nextId = 1
  const send = async (url: string, calls: readonly RpcCall[], limits: JsonLimits) => {
    const first = nextId
    nextId += calls.length
    const requests = calls.map(({ method, params }, index) => ({ jsonrpc: '2.0', id: first + index, method, params }))
    const body = JSON.stringify(requests.length === 1 ? requests[0] : requests)
    const methods = calls.map(({ method }) => method)
    const response = await inNodeSpan(chainId, methods, () => outbound.postJson(url, body, limits))
    if (calls.length > 1 && isRefusedAsLarge(response)) throw new OutboundError('too-large')
    return readResponses(Array.isArray(response) ? response : [response], first, calls)
  }
  const sendShort: Request = (url, calls) => send(url, calls, { timeoutMs, bytesMax: shortBytesMax })
  const sendAny: Request = (url, calls) => send(url, calls, limitsOf(calls, timeoutMs))

  /** Requests calls one by one: receipts first that were requested least recently. */
  const requestEach = async ({ url, responses, untilMs }: Reading, calls: readonly RpcCall[]): Promise<void> => {
    for (const call of calls.toSorted((one, other) => receipts.triedMs(url, one) - receipts.triedMs(url, other))) {
      if (nowMs() >= untilMs) return
      const response = (await unlessTooLarge(sendAny(url, [call]))) ?? []
      if (response === 'no-turn') continue
      keepResponses(responses, [call], response)
      const isRead = response[0] !== undefined && (response[0].ok || !isOfLength(response[0]))
      receipts.markTried(url, call, isRead ? 'read' : 'unread')
    }
  }
  /** Requests calls in parts with short responses. Returns the calls with longer ones. */
  const requestShort = async (reading: Reading, calls: readonly RpcCall[]): Promise<readonly RpcCall[]> => {
    const { url, responses, untilMs } = reading
    const long: RpcCall[] = []
    for (const part of partsOf(calls)) {
      if (nowMs() >= untilMs) break
      const found = await unlessTooLarge(sendShort(url, part))
      if (found !== undefined && found !== 'no-turn') keepResponses(responses, part, found)
      else if (part.length > 1) long.push(...(await requestShort(reading, part)))
      else
        for (const call of part) {
          long.push(call)
          receipts.markLong(url, call)
        }
    }
    return long
  }
  const requestOneShort = async (url: string, call: RpcCall): Promise<RpcResponse> => {
    if (receipts.lengthOf(url, call) !== 'usual') return unreadable(call)
    const found = await unlessTooLarge(sendShort(url, [call]))
    if (found === undefined || found === 'no-turn') receipts.markLong(url, call)
    else if (found[0] !== undefined) return found[0]
    return unreadable(call)
  }
  /** Requests calls in one response, or in parts. Returns those with long responses, which are to be requested by themselves. */
  const requestTogether = async (reading: Reading, calls: readonly RpcCall[]): Promise<readonly RpcCall[]> => {
    if (calls.length < 2) return calls
    const found = await unlessTooLarge(sendAny(reading.url, calls))
    if (found !== undefined && found !== 'no-turn') {
      keepResponses(reading.responses, calls, found)
      return []
    }
    const [bounded, free] = [calls.filter((call) => !isOfAnyLength(call)), calls.filter(isOfAnyLength)]
    if (free.length > 0) {
      await requestEach(reading, await requestTogether(reading, bounded))
      return free.length === 1 ? free : requestShort({ ...reading, untilMs: endOfDivision() }, free)
    }
    for (const part of partsOf(calls)) await requestEach(reading, await requestTogether(reading, part))
    return []
  }
  const requestAll: Request = async (url, calls) => {
    const [only] = calls
    if (only?.length === 'short') return [await requestOneShort(url, only)]
    const { usual = [], long = [] } = Object.groupBy(calls, (call) => receipts.lengthOf(url, call))
    const reading = { url, responses: new Map<RpcCall, RpcResponse>(), untilMs: Number.POSITIVE_INFINITY }
    const found = await requestTogether(reading, usual)
    await requestEach({ ...reading, untilMs: endOfDivision() }, [...found, ...long])
    return calls.map((call) => reading.responses.get(call) ?? unreadable(call))
  }
  return async (url, calls) => {
    const { unique, positions } = uniqueOf(calls)
    const responses = await requestAll(url, unique)
    return positions.flatMap((position) => responses[position] ?? [])
  }
}

/** The result; `undefined` if it is too large, and `no-turn` if too many large ones were read at that time. */
async function unlessTooLarge<T>(result: Promise<T>): Promise<T | 'no-turn' | undefined> {
  try {
    return await result
  } catch (error) {
    if (error instanceof OutboundError && error.kind === 'too-large') return undefined
    if (error instanceof OutboundError && error.kind === 'no-turn') return 'no-turn'
    throw error
  }
}

function keepResponses(
  responses: Reading['responses'],
  calls: readonly RpcCall[],
  found: readonly RpcResponse[],
): void {
  for (const [index, call] of calls.entries()) {
    const response = found[index]
    if (response !== undefined) responses.set(call, response)
  }
}

/** The gas of a call: a number, or the data with which the called code reverts, which may have megabytes and is of no use. */
const estimate = 'eth_estimateGas'

/** Calls whose responses have any length, since anybody can write data of any length on the chain. */
const ofAnyLength = new Set(['eth_getLogs', 'eth_getTransactionReceipt'])

function isOfAnyLength({ method }: RpcCall): boolean {
  return ofAnyLength.has(method)
}

/** The limits of a response. Only a response to calls of any length may take longer: a node that sends others slowly is at fault. */
function limitsOf(calls: readonly RpcCall[], timeoutMs: number): JsonLimits {
  if (calls.some(({ method }) => method === estimate)) return { timeoutMs, bytesMax }
  if (!calls.some(isOfAnyLength)) return { timeoutMs, bytesMax: otherBytesMax }
  const large = { bytesMax: largeBytesMax, timeoutMs: largeTimes * timeoutMs, createReader: createListReader }
  return { timeoutMs, bytesMax, large }
}

/**
 * The result of a call whose response is too large. Logs get an error and are then requested in parts. A receipt gets an error too, and the other receipts
 * of its request are read. A gas estimate counts as reverted, since only the data of a revert has an unlimited length.
 */
function unreadable(call: RpcCall): RpcResponse {
  const message = 'the response is too large'
  if (call.method === estimate)
    return { ok: false, code: 3, message: 'execution reverted: the data is too large', data: undefined }
  if (!isOfAnyLength(call)) throw new TooLarge(message)
  return { ok: false, code: tooLargeCode, message, data: undefined }
}

/** Into how many parts the calls of a request are divided. */
const partsMost = 8

/** Parts of the same size, in order. */
function partsOf(calls: readonly RpcCall[]): readonly (readonly RpcCall[])[] {
  const size = Math.ceil(calls.length / partsMost)
  return [...Map.groupBy(calls, (_, index) => Math.floor(index / size)).values()]
}

/** Whether a node refused some of several calls because of the length of its response. */
function isRefusedAsLarge(response: unknown): boolean {
  return (Array.isArray(response) ? response : [response]).some((entry: unknown) => {
    const error = isRecord(entry) ? entry.error : undefined
    return isRecord(error) && isOfLength(error)
  })
}

/** The calls without repetitions, and for each call the position of its response. */
function uniqueOf(calls: readonly RpcCall[]): {
  readonly unique: readonly RpcCall[]
  readonly positions: readonly number[]
} {
  if (calls.length === 1) return { unique: calls, positions: [0] }
  const known = new Map<string, number>()
  const unique: RpcCall[] = []
  const positions = calls.map((call) => {
    const key = JSON.stringify([call.method, call.params])
    const position = known.get(key) ?? unique.push(call) - 1
    known.set(key, position)
    return position
  })
  return { unique, positions }
}
