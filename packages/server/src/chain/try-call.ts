import { decodeRevertReason, isHex } from '@purser/protocol'
import { fail } from './errors.ts'
import type { CallTrial, TriedCall } from './port.ts'
import { readQuantity } from './read.ts'
import type { Rpc } from './rpc.ts'

/** Words with which the several clients say that the call itself would fail, as against that they cannot answer. */
const callFaults = /revert|insufficient|exceeds balance|out of gas|invalid opcode|gas required exceeds|execution/i

/**
 * Has a node try a call on the latest block (`eth_estimateGas`). Without a price for gas, so that it is tried also for an account
 * that could not pay for it; what it costs is weighed elsewhere. Throws `chain-unavailable` where the node says something else.
 */
export async function tryCall(rpc: Rpc, { from, to, data, value }: TriedCall): Promise<CallTrial> {
  const call = { from, to, data, value: `0x${value.toString(16)}` }
  const answer = await rpc.call('eth_estimateGas', [call, 'latest'])
  if (answer.ok) return { ok: true, gas: readQuantity(answer.result, 'gas') }
  if (answer.data === undefined && !callFaults.test(answer.message))
    throw fail('chain-unavailable', {}, new Error(answer.message))
  return { ok: false, reason: reasonOf(answer.data) }
}

function reasonOf(data: string | undefined): string | null {
  return data !== undefined && isHex(data) ? (decodeRevertReason(data) ?? null) : null
}
