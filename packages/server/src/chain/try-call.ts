import { decodeRevertReason, type Hex, hexToBytes, isHex } from '@purser/protocol'
import { fail } from './errors.ts'
import type { CallTrial, TriedCall } from './port.ts'
import { readQuantity } from './rpc/read.ts'
import type { Rpc, RpcAnswer, RpcCall } from './rpc/rpc.ts'

/** Words with which the several clients say that the call itself would fail, as against that they cannot answer. */
const callFaults = /revert|insufficient|exceeds balance|out of gas|invalid opcode|gas required exceeds|execution/i

/** What a transaction may have in all (EIP-7825), less the fifth that is added to what was estimated. */
const gasMax = 13_900_000n

/** What its bytes alone cost a transaction (EIP-7623): none is taken with less. */
function gasMinOf(data: Hex): bigint {
  const bytes = hexToBytes(data)
  const zeros = bytes.filter((byte) => byte === 0).length
  return 21_000n + 10n * BigInt(zeros + 4 * (bytes.length - zeros))
}

/**
 * Has a node try each of these calls on the latest block (`eth_estimateGas`), each for itself. Without a price for gas, so that it is tried
 * also for an account that could not pay for it; what it costs is weighed elsewhere. Where the node says something else, or names more gas
 * or less than any transaction can have (signed with that, it would hold up its account for ever), the others are asked. An error,
 * `chain-unavailable`, in the place of a call of which none says anything of use.
 */
export async function tryEach(rpc: Rpc, calls: readonly TriedCall[]): Promise<(CallTrial | Error)[]> {
  const answers = await rpc.batch(calls.map(asked))
  return Promise.all(
    calls.map(async (call, index) => {
      const trial = trialOf(call, answers[index])
      return trial instanceof Error ? rpc.onOneNode((one) => tryOne(one, call)).catch(errorOf) : trial
    }),
  )
}

async function tryOne(rpc: Rpc, call: TriedCall): Promise<CallTrial> {
  const [answer] = await rpc.batch([asked(call)])
  const trial = trialOf(call, answer)
  if (trial instanceof Error) throw trial
  return trial
}

function errorOf(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error))
}

function asked({ from, to, data, value }: TriedCall): RpcCall {
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
