import {
  type Address,
  decodeRevertReason,
  type Hex,
  hexToBytes,
  isHex,
  type Network,
  tokenByAddress,
} from '@purser/protocol'
import { batch } from '../../platform/db/batch.ts'
import { fail } from '../errors.ts'
import type { CallTrial, Chain, Holding, HoldingQuestion, LaneCall, OfferedFees, TriedCall } from '../port.ts'
import { callFaultOf } from '../rpc/call-fault.ts'
import { invalidResponse, readHex, readQuantity } from '../rpc/read.ts'
import { isRecord, type Rpc, type RpcCall, type RpcResponse } from '../rpc/rpc.ts'
import { readHoldings } from './holdings.ts'

const requestedAtOnce = 64
const batchesMax = 4
/** A call about more accounts than this gets its own request. */
const questionsMax = 8

/**
 * Reads that combine concurrent calls into one HTTP request to a node. A batch starts after all of its calls, so no caller gets a response that is
 * older than its call.
 */
export function createBatchedReads(
  rpc: Rpc,
  network: Network,
  readFees: () => Promise<OfferedFees>,
): Pick<Chain, 'holdings' | 'tryCall' | 'offeredFees'> {
  const holdings = batch<readonly HoldingQuestion[], readonly (Holding | Error)[]>(
    { itemsMax: requestedAtOnce, batchesMax },
    async (requested) => {
      const all = await readHoldings(rpc, network, requested.flat())
      const starts = requested.map((_, index) => requested.slice(0, index).flat().length)
      return requested.map(({ length }, index) => all.slice(starts[index], (starts[index] ?? 0) + length))
    },
  )
  const tryBatched = batch<TriedCall, CallTrial | Error>({ itemsMax: requestedAtOnce, batchesMax }, (calls) =>
    tryEach(rpc, calls),
  )
  const offeredFees = batch<undefined, OfferedFees>({ itemsMax: 1_000, batchesMax: 1 }, async (requested) => {
    const fees = await readFees()
    return requested.map(() => fees)
  })
  return {
    async holdings(questions, blockHash) {
      const isAlone = blockHash !== undefined || questions.length > questionsMax
      const read = await (isAlone ? readHoldings(rpc, network, questions, blockHash) : holdings(questions))
      return read.map(orThrow)
    },
    offeredFees: () => offeredFees(undefined),
    async tryCall(call) {
      // An untrusted contract gets its own request, so that slow code does not delay other calls.
      const isTokens = tokenByAddress(network, call.to) !== undefined
      const trial = isTokens ? await tryBatched(call) : (await tryEach(rpc, [call]))[0]
      return orThrow(trial ?? new Error('the node returned no result for a call'))
    },
  }
}

/** Throws when the response is an error. An error for one token or call affects only its caller. */
function orThrow<T>(response: T | Error): T {
  if (response instanceof Error) throw response
  return response
}

/** The gas limit of a transaction (EIP-7825), less the fifth that is added to estimates. */
const gasMax = 13_900_000n

/** The minimum gas that a transaction needs for its data (EIP-7623). */
function gasMinOf(data: Hex): bigint {
  const bytes = hexToBytes(data)
  const zeros = bytes.filter((byte) => byte === 0).length
  return 21_000n + 10n * BigInt(zeros + 4 * (bytes.length - zeros))
}

/**
 * Tries each call separately on the latest block (`eth_estimateGas`). No gas price is given, so that the trial also works for an account that could
 * not pay for it; costs are checked elsewhere. When a node returns another error, or a gas amount that no transaction can have (a transaction
 * signed with it would block its account forever), the other nodes are queried. A call for which no node gives a usable result gets a
 * `chain-unavailable` error.
 */
async function tryEach(rpc: Rpc, calls: readonly TriedCall[]): Promise<(CallTrial | Error)[]> {
  const responses = await rpc.batch(calls.map(estimateCall))
  return Promise.all(
    calls.map(async (call, index) => {
      const trial = trialOf(call, responses[index])
      return trial instanceof Error ? rpc.onOneNode((one) => tryOne(one, call)).catch(errorOf) : trial
    }),
  )
}

/** Tries one call, as `tryCall` does, at the nodes of this `Rpc` only. Throws `chain-unavailable` without a usable result. */
export async function tryOne(rpc: Rpc, call: TriedCall): Promise<CallTrial> {
  const [response] = await rpc.batch([estimateCall(call)])
  const trial = trialOf(call, response)
  if (trial instanceof Error) throw trial
  return trial
}

function errorOf(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error))
}

function estimateCall({ from, to, data, value }: TriedCall): RpcCall {
  return { method: 'eth_estimateGas', params: [{ from, to, data, value: `0x${value.toString(16)}` }, 'latest'] }
}

function trialOf({ data }: TriedCall, response: RpcResponse | undefined): CallTrial | Error {
  if (response?.ok === false && callFaultOf(response) !== undefined)
    return { ok: false, reason: reasonOf(response.data) }
  if (response?.ok !== true) return fail('chain-unavailable', {}, new Error(response?.message ?? 'no answer'))
  try {
    const gas = readQuantity(response.result, 'gas')
    if (gas <= gasMax && gas >= gasMinOf(data)) return { ok: true, gas }
    return fail('chain-unavailable', {}, new Error(`no call takes ${gas} gas`))
  } catch (error) {
    return fail('chain-unavailable', {}, error)
  }
}

function reasonOf(data: string | undefined): string | null {
  return data !== undefined && isHex(data) ? (decodeRevertReason(data) ?? null) : null
}

/**
 * Runs calls in sequence on the latest block (`eth_simulateV1`), each on the state that the one before left, without a gas price. The returned gas
 * is the sum of what each used as a separate transaction plus a quarter, since refunds (EIP-3529: at most a fifth) are paid only after the gas was
 * available. Throws `chain-unavailable` when the node does not return the outcome of each call.
 */
export async function tryCalls(rpc: Rpc, from: Address, calls: readonly LaneCall[]): Promise<CallTrial> {
  const simulated = calls.map(({ to, data, value }) => ({ from, to, data, value: `0x${value.toString(16)}` }))
  const result = await rpc.result('eth_simulateV1', [
    { blockStateCalls: [{ calls: simulated }], validation: false },
    'latest',
  ])
  const outcomes = outcomesIn(result)
  if (outcomes.length !== calls.length) throw invalidResponse(outcomesLack)
  const refused = outcomes.find(({ isOk }) => !isOk)
  if (refused !== undefined) return { ok: false, reason: decodeRevertReason(refused.returned) ?? null }
  return { ok: true, gas: (outcomes.reduce((sum, { gasUsed }) => sum + gasUsed, 0n) * 5n) / 4n }
}

interface CallOutcome {
  readonly isOk: boolean
  readonly gasUsed: bigint
  readonly returned: Hex
}

function outcomesIn(result: unknown): CallOutcome[] {
  const block: unknown = Array.isArray(result) ? result[0] : undefined
  if (!isRecord(block) || !Array.isArray(block.calls)) throw invalidResponse(outcomesLack)
  return block.calls.map((call: unknown) => {
    if (!isRecord(call)) throw invalidResponse(outcomesLack)
    const gasUsed = readQuantity(call.gasUsed, 'gas')
    return { isOk: call.status === '0x1', gasUsed, returned: readHex(call.returnData, 'call result') }
  })
}

const outcomesLack = 'eth_simulateV1: the node did not return the outcome of each call'
