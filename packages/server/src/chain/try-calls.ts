import { type Address, decodeRevertReason, type Hex } from '@purser/protocol'
import { fail } from './errors.ts'
import type { CallTrial, LaneCall } from './port.ts'
import { readHex, readQuantity } from './rpc/read.ts'
import { isRecord, type Rpc } from './rpc/rpc.ts'

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
  if (outcomes.length !== calls.length) throw invalidAnswer()
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
  if (!isRecord(block) || !Array.isArray(block.calls)) throw invalidAnswer()
  return block.calls.map((call: unknown) => {
    if (!isRecord(call)) throw invalidAnswer()
    const gasUsed = readQuantity(call.gasUsed, 'gas')
    return { isOk: call.status === '0x1', gasUsed, returned: readHex(call.returnData, 'call result') }
  })
}

function invalidAnswer(): Error {
  return fail('chain-unavailable', {}, new Error('eth_simulateV1: the node did not return the outcome of each call'))
}
