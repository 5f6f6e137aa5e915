import { type Address, decodeRevertReason, type Hex } from '@purser/protocol'
import { isProblem } from '../platform/errors.ts'
import { fail } from './errors.ts'
import type { BalanceReading, LaneCall, Simulation } from './port.ts'
import { readHex } from './rpc/read.ts'
import { isRecord, type Rpc } from './rpc/rpc.ts'
import { coinReader, programOf, readingCall } from './simulate-program.ts'

/**
 * What calls that one account makes, one after the other, would change as of the latest block: balances read before the first and after
 * the last, in one request, on a state that nobody keeps. By `eth_simulateV1`; where a node does not have it, by `eth_call` with code of ours
 * put at the account for that one call. `unable` where no node does either. Gas costs nothing, so that a balance of coin shows the calls alone.
 */
export async function simulate(
  rpc: Rpc,
  from: Address,
  calls: readonly LaneCall[],
  readings: readonly BalanceReading[],
): Promise<Simulation> {
  for (const way of [bySimulation, byOverride]) {
    try {
      return await way(rpc, from, calls, readings)
    } catch (error) {
      if (!isProblem(error, 'chain-unavailable')) throw error
    }
  }
  return { outcome: 'unable' }
}

type Way = (
  rpc: Rpc,
  from: Address,
  calls: readonly LaneCall[],
  readings: readonly BalanceReading[],
) => Promise<Simulation>

const bySimulation: Way = async (rpc, from, calls, readings) => {
  const reads = readings.map(readingCall)
  const asked = calls.map(({ to, data, value }) => ({ from, to, data, value: `0x${value.toString(16)}` }))
  const blockStateCalls = [{ stateOverrides: coinReader, calls: [...reads, ...asked, ...reads] }]
  const result = await rpc.result('eth_simulateV1', [{ blockStateCalls, validation: false }, 'latest'])
  const ran = answersIn(result)
  if (ran.length !== 2 * reads.length + asked.length) throw unclear('eth_simulateV1')
  const refused = ran.find(({ isOk }) => !isOk)
  if (refused !== undefined) return { outcome: 'refused', reason: decodeRevertReason(refused.returned) ?? null }
  const told = ran.map(({ returned }) => returned)
  return changesIn(told.slice(0, reads.length), told.slice(reads.length + asked.length))
}

const byOverride: Way = async (rpc, from, calls, readings) => {
  const overrides = { ...coinReader, [from]: { code: programOf(calls, readings.map(readingCall)) } }
  const answer = await rpc.call('eth_call', [{ from, to: from, data: '0x' }, 'latest', overrides])
  if (!answer.ok && answer.data !== undefined)
    return { outcome: 'refused', reason: decodeRevertReason(answer.data) ?? null }
  const digits = answer.ok ? readHex(answer.result, 'call result').slice(2) : ''
  // A node that ignores the code answers nothing.
  if (digits.length !== readings.length * 2 * wordDigits) throw unclear('eth_call')
  const words = Array.from(
    { length: readings.length * 2 },
    (_, index): Hex => `0x${digits.slice(index * wordDigits, (index + 1) * wordDigits)}`,
  )
  return changesIn(words.slice(0, readings.length), words.slice(readings.length))
}

const wordDigits = 64

function changesIn(before: readonly Hex[], after: readonly Hex[]): Simulation {
  const all = [...before, ...after]
  if (all.some((word) => word.length !== 2 + wordDigits)) throw unclear('a balance')
  return { outcome: 'ran', changes: after.map((word, index) => BigInt(word) - BigInt(before[index] ?? '0x0')) }
}

function answersIn(result: unknown): { readonly isOk: boolean; readonly returned: Hex }[] {
  const block: unknown = Array.isArray(result) ? result[0] : undefined
  if (!isRecord(block) || !Array.isArray(block.calls)) throw unclear('eth_simulateV1')
  return block.calls.map((call: unknown) => {
    if (!isRecord(call)) throw unclear('eth_simulateV1')
    return { isOk: call.status === '0x1', returned: readHex(call.returnData, 'call result') }
  })
}

function unclear(what: string): Error {
  return fail('chain-unavailable', {}, new Error(`${what}: the node does not tell what a simulation changed`))
}
