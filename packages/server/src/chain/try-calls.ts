import { type Address, decodeRevertReason, type Hex } from '@purser/protocol'
import { fail } from './errors.ts'
import type { CallTrial, LaneCall } from './port.ts'
import { readHex, readQuantity } from './rpc/read.ts'
import { isRecord, type Rpc } from './rpc/rpc.ts'

/**
 * Has a node run calls one after the other on the latest block (`eth_simulateV1`), each on what the one before left, without a price for gas.
 * The gas is the sum of what each used as a transaction of its own, and a quarter more, since what a call gives back (EIP-3529: a fifth at
 * most) it must be given first. Throws `chain-unavailable` where the node does not say what became of each.
 */
export async function tryCalls(rpc: Rpc, from: Address, calls: readonly LaneCall[]): Promise<CallTrial> {
  const asked = calls.map(({ to, data, value }) => ({ from, to, data, value: `0x${value.toString(16)}` }))
  const result = await rpc.result('eth_simulateV1', [
    { blockStateCalls: [{ calls: asked }], validation: false },
    'latest',
  ])
  const ran = outcomesIn(result)
  if (ran.length !== calls.length) throw unclear()
  const refused = ran.find(({ isOk }) => !isOk)
  if (refused !== undefined) return { ok: false, reason: decodeRevertReason(refused.returned) ?? null }
  return { ok: true, gas: (ran.reduce((sum, { gasUsed }) => sum + gasUsed, 0n) * 5n) / 4n }
}

interface Ran {
  readonly isOk: boolean
  readonly gasUsed: bigint
  readonly returned: Hex
}

function outcomesIn(result: unknown): Ran[] {
  const block: unknown = Array.isArray(result) ? result[0] : undefined
  if (!isRecord(block) || !Array.isArray(block.calls)) throw unclear()
  return block.calls.map((call: unknown) => {
    if (!isRecord(call)) throw unclear()
    const gasUsed = readQuantity(call.gasUsed, 'gas')
    return { isOk: call.status === '0x1', gasUsed, returned: readHex(call.returnData, 'call result') }
  })
}

function unclear(): Error {
  return fail('chain-unavailable', {}, new Error('eth_simulateV1: the node does not tell of each call'))
}
