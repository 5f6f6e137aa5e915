import {
  type Address,
  addressWord,
  decodeRevertReason,
  encodeBalanceOf,
  type Hex,
  selectorOf,
  uintWord,
  zeroAddress,
} from '@purser/protocol'
import { isProblem } from '../../platform/errors.ts'
import type { BalanceReading, LaneCall, Simulation } from '../port.ts'
import { invalidResponse, readHex } from '../rpc/read.ts'
import { isRecord, type Rpc } from '../rpc/rpc.ts'

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
  const outcomes = valuesIn(result)
  if (outcomes.length !== 2 * reads.length + simulated.length) throw invalidResponse(unusable)
  const refused = outcomes.find(({ isOk }) => !isOk)
  if (refused !== undefined) return { outcome: 'refused', reason: decodeRevertReason(refused.returned) ?? null }
  const words = outcomes.map(({ returned }) => returned)
  return changesIn(words.slice(0, reads.length), words.slice(reads.length + simulated.length))
}

const byOverride: Way = async (rpc, from, calls, readings) => {
  const overrides = { ...coinReader, [from]: { code: programOf(calls, readings.map(readingCall)) } }
  const response = await rpc.call('eth_call', [{ from, to: from, data: '0x' }, 'latest', overrides])
  if (!response.ok && response.data !== undefined)
    return { outcome: 'refused', reason: decodeRevertReason(response.data) ?? null }
  const digits = response.ok ? readHex(response.result, 'call result').slice(2) : ''
  // A node that ignores the override returns nothing.
  if (digits.length !== readings.length * 2 * wordDigits) throw invalidResponse(unusable)
  const words = Array.from(
    { length: readings.length * 2 },
    (_, index): Hex => `0x${digits.slice(index * wordDigits, (index + 1) * wordDigits)}`,
  )
  return changesIn(words.slice(0, readings.length), words.slice(readings.length))
}

const wordDigits = 64
const unusable = 'the node returned no usable simulation result'

function changesIn(before: readonly Hex[], after: readonly Hex[]): Simulation {
  const all = [...before, ...after]
  if (all.some((word) => word.length !== 2 + wordDigits)) throw invalidResponse(unusable)
  return { outcome: 'ran', changes: after.map((word, index) => BigInt(word) - BigInt(before[index] ?? '0x0')) }
}

function valuesIn(result: unknown): { readonly isOk: boolean; readonly returned: Hex }[] {
  const block: unknown = Array.isArray(result) ? result[0] : undefined
  if (!isRecord(block) || !Array.isArray(block.calls)) throw invalidResponse(unusable)
  return block.calls.map((call: unknown) => {
    if (!isRecord(call)) throw invalidResponse(unusable)
    return { isOk: call.status === '0x1', returned: readHex(call.returnData, 'call result') }
  })
}

/** A read-only call. */
interface ReadCall {
  readonly to: Hex
  readonly data: Hex
}

const readerAddress = '0x00000000000000000000000000000000c0132ead'

/**
 * State override that puts code at an unused address to return the coin balance of a given account: PUSH1 0, CALLDATALOAD, BALANCE, then MSTORE and
 * RETURN.
 */
const coinReader = { [readerAddress]: { code: '0x6000353160005260206000f3' } } as const

const totalSupply = selectorOf('totalSupply()')

/** The call that returns the balance as one word. */
function readingCall({ token, account }: BalanceReading): ReadCall {
  if (account === 'supply') return { to: token, data: totalSupply }
  if (token === zeroAddress) return { to: readerAddress, data: `0x${addressWord(account)}` }
  return { to: token, data: encodeBalanceOf(account) }
}

/** Jump target that reverts with the return data of the failed call. */
const failAt = '04'
const begin = '61000f565b3d600060003e3d6000fd5b'

/**
 * EVM code that reads the balances, makes the calls, reads the balances again and returns all words before, then all words after. It reverts with
 * the return data of the first failed call. It has no loops and keeps no state.
 */
function programOf(calls: readonly LaneCall[], reads: readonly ReadCall[]): Hex {
  const responses = 2 * reads.length * 32
  const steps = [
    ...reads.map((read, index) => ({ ...read, slot: index * 32 })),
    ...calls,
    ...reads.map((read, index) => ({ ...read, slot: (reads.length + index) * 32 })),
  ]
  const write = (codeBytes: number) => {
    let blobAt = codeBytes
    const code = steps.map((step) => {
      const place = { blobAt, scratch: responses }
      blobAt += (step.data.length - 2) / 2
      return 'slot' in step ? readOf(step, place) : callOf(step, place)
    })
    return `${begin}${code.join('')}${push(responses)}6000f3`
  }
  const blobs = steps.map(({ data }) => data.slice(2)).join('')
  return `0x${write(write(0).length / 2)}${blobs}`
}

interface MemoryLayout {
  readonly blobAt: number
  readonly scratch: number
}

function readOf({ to, data, slot }: ReadCall & { readonly slot: number }, place: MemoryLayout): string {
  return `${copy(data, place)}6020${push(slot)}${args(data, place)}${account(to)}5afa15${jumpIfSo}`
}

function callOf({ to, data, value }: LaneCall, place: MemoryLayout): string {
  return `${copy(data, place)}60006000${args(data, place)}7f${uintWord(value)}${account(to)}5af115${jumpIfSo}`
}

const jumpIfSo = `60${failAt}57`

/** CODECOPY of a call's data into memory. */
function copy(data: Hex, { blobAt, scratch }: MemoryLayout): string {
  return `${push((data.length - 2) / 2)}${push(blobAt)}${push(scratch)}39`
}

function args(data: Hex, { scratch }: MemoryLayout): string {
  return `${push((data.length - 2) / 2)}${push(scratch)}`
}

/** Always PUSH4, so that the code length does not depend on the value. */
function push(value: number): string {
  return `63${value.toString(16).padStart(8, '0')}`
}

function account(address: Hex): string {
  return `73${address.slice(2).toLowerCase()}`
}
