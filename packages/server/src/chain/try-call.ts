import { decodeRevertReason, type Hex, hexToBytes, isHex } from '@purser/protocol'
import { fail } from './errors.ts'
import type { CallTrial, TriedCall } from './port.ts'
import { readQuantity } from './rpc/read.ts'
import type { Rpc, RpcAnswer, RpcCall } from './rpc/rpc.ts'

/** Error messages of the different clients when the call itself would fail, as opposed to the node being unable to answer. */
const callFaults = /revert|insufficient|exceeds balance|out of gas|invalid opcode|gas required exceeds|execution/i

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
 * signed with it would block its account forever), the other nodes are queried. A call for which no node gives a usable answer gets a
 * `chain-unavailable` error.
 */
export async function tryEach(rpc: Rpc, calls: readonly TriedCall[]): Promise<(CallTrial | Error)[]> {
  const answers = await rpc.batch(calls.map(estimateCall))
  return Promise.all(
    calls.map(async (call, index) => {
      const trial = trialOf(call, answers[index])
      return trial instanceof Error ? rpc.onOneNode((one) => tryOne(one, call)).catch(errorOf) : trial
    }),
  )
}

async function tryOne(rpc: Rpc, call: TriedCall): Promise<CallTrial> {
  const [answer] = await rpc.batch([estimateCall(call)])
  const trial = trialOf(call, answer)
  if (trial instanceof Error) throw trial
  return trial
}

function errorOf(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error))
}

function estimateCall({ from, to, data, value }: TriedCall): RpcCall {
  return { method: 'eth_estimateGas', params: [{ from, to, data, value: `0x${value.toString(16)}` }, 'latest'] }
}

function trialOf({ data }: TriedCall, answer: RpcAnswer | undefined): CallTrial | Error {
  if (answer?.ok === false && (answer.data !== undefined || callFaults.test(answer.message)))
    return { ok: false, reason: reasonOf(answer.data) }
  if (answer?.ok !== true) return fail('chain-unavailable', {}, new Error(answer?.message ?? 'no answer'))
  try {
    const gas = readQuantity(answer.result, 'gas')
    if (gas <= gasMax && gas >= gasMinOf(data)) return { ok: true, gas }
    return fail('chain-unavailable', {}, new Error(`no call takes ${gas} gas`))
  } catch (error) {
    return fail('chain-unavailable', {}, error)
  }
}

function reasonOf(data: string | undefined): string | null {
  return data !== undefined && isHex(data) ? (decodeRevertReason(data) ?? null) : null
}
