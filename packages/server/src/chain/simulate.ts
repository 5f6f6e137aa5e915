import { type Address, decodeRevertReason, type Hex } from '@purser/protocol'
import { isProblem } from '../platform/errors.ts'
import { fail } from './errors.ts'
import type { BalanceReading, LaneCall, Simulation } from './port.ts'
import { readHex } from './rpc/read.ts'
import { isRecord, type Rpc } from './rpc/rpc.ts'
import { coinReader, programOf, readingCall } from './simulate-program.ts'

/**
 * Simulates an account's calls in sequence on the latest block and returns how they would change balances, read before the first call and after the
 * last in one request. Uses `eth_simulateV1`, or `eth_call` with our code as a state override on nodes without it. Returns `unable` when no node
 * supports either. Gas is free, so that coin balances change only by the calls.
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
  const simulated = calls.map(({ to, data, value }) => ({ from, to, data, value: `0x${value.toString(16)}` }))
  const blockStateCalls = [{ stateOverrides: coinReader, calls: [...reads, ...simulated, ...reads] }]
  const result = await rpc.result('eth_simulateV1', [{ blockStateCalls, validation: false }, 'latest'])
  const outcomes = answersIn(result)
  if (outcomes.length !== 2 * reads.length + simulated.length) throw invalidAnswer('eth_simulateV1')
  const refused = outcomes.find(({ isOk }) => !isOk)
  if (refused !== undefined) return { outcome: 'refused', reason: decodeRevertReason(refused.returned) ?? null }
  const words = outcomes.map(({ returned }) => returned)
  return changesIn(words.slice(0, reads.length), words.slice(reads.length + simulated.length))
}

const byOverride: Way = async (rpc, from, calls, readings) => {
  const overrides = { ...coinReader, [from]: { code: programOf(calls, readings.map(readingCall)) } }
  const answer = await rpc.call('eth_call', [{ from, to: from, data: '0x' }, 'latest', overrides])
  if (!answer.ok && answer.data !== undefined)
    return { outcome: 'refused', reason: decodeRevertReason(answer.data) ?? null }
  const digits = answer.ok ? readHex(answer.result, 'call result').slice(2) : ''
  // A node that ignores the override returns nothing.
  if (digits.length !== readings.length * 2 * wordDigits) throw invalidAnswer('eth_call')
  const words = Array.from(
    { length: readings.length * 2 },
    (_, index): Hex => `0x${digits.slice(index * wordDigits, (index + 1) * wordDigits)}`,
  )
  return changesIn(words.slice(0, readings.length), words.slice(readings.length))
}

const wordDigits = 64

function changesIn(before: readonly Hex[], after: readonly Hex[]): Simulation {
  const all = [...before, ...after]
  if (all.some((word) => word.length !== 2 + wordDigits)) throw invalidAnswer('a balance')
  return { outcome: 'ran', changes: after.map((word, index) => BigInt(word) - BigInt(before[index] ?? '0x0')) }
}

function answersIn(result: unknown): { readonly isOk: boolean; readonly returned: Hex }[] {
  const block: unknown = Array.isArray(result) ? result[0] : undefined
  if (!isRecord(block) || !Array.isArray(block.calls)) throw invalidAnswer('eth_simulateV1')
  return block.calls.map((call: unknown) => {
    if (!isRecord(call)) throw invalidAnswer('eth_simulateV1')
    return { isOk: call.status === '0x1', returned: readHex(call.returnData, 'call result') }
  })
}

function invalidAnswer(what: string): Error {
  return fail('chain-unavailable', {}, new Error(`${what}: the node returned no usable simulation result`))
}
