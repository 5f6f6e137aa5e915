import { addressWord, encodeBalanceOf, type Hex, selectorOf, uintWord, zeroAddress } from '@purser/protocol'
import type { BalanceReading, LaneCall } from './port.ts'

/** A read-only call. */
export interface ReadCall {
  readonly to: Hex
  readonly data: Hex
}

const readerAddress = '0x00000000000000000000000000000000c0132ead'

/**
 * State override that puts code at an unused address to return the coin balance of a given account: PUSH1 0, CALLDATALOAD, BALANCE, then MSTORE and
 * RETURN.
 */
export const coinReader = { [readerAddress]: { code: '0x6000353160005260206000f3' } } as const

const totalSupply = selectorOf('totalSupply()')

/** The call that returns the balance as one word. */
export function readingCall({ token, account }: BalanceReading): ReadCall {
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
export function programOf(calls: readonly LaneCall[], reads: readonly ReadCall[]): Hex {
  const answers = 2 * reads.length * 32
  const steps = [
    ...reads.map((read, index) => ({ ...read, slot: index * 32 })),
    ...calls,
    ...reads.map((read, index) => ({ ...read, slot: (reads.length + index) * 32 })),
  ]
  const write = (codeBytes: number) => {
    let blobAt = codeBytes
    const code = steps.map((step) => {
      const place = { blobAt, scratch: answers }
      blobAt += (step.data.length - 2) / 2
      return 'slot' in step ? readOf(step, place) : callOf(step, place)
    })
    return `${begin}${code.join('')}${push(answers)}6000f3`
  }
  const blobs = steps.map(({ data }) => data.slice(2)).join('')
  return `0x${write(write(0).length / 2)}${blobs}`
}

interface Place {
  readonly blobAt: number
  readonly scratch: number
}

function readOf({ to, data, slot }: ReadCall & { readonly slot: number }, place: Place): string {
  return `${copy(data, place)}6020${push(slot)}${args(data, place)}${account(to)}5afa15${jumpIfSo}`
}

function callOf({ to, data, value }: LaneCall, place: Place): string {
  return `${copy(data, place)}60006000${args(data, place)}7f${uintWord(value)}${account(to)}5af115${jumpIfSo}`
}

const jumpIfSo = `60${failAt}57`

/** CODECOPY of a call's data into memory. */
function copy(data: Hex, { blobAt, scratch }: Place): string {
  return `${push((data.length - 2) / 2)}${push(blobAt)}${push(scratch)}39`
}

function args(data: Hex, { scratch }: Place): string {
  return `${push((data.length - 2) / 2)}${push(scratch)}`
}

/** Always PUSH4, so that the code length does not depend on the value. */
function push(value: number): string {
  return `63${value.toString(16).padStart(8, '0')}`
}

function account(address: Hex): string {
  return `73${address.slice(2).toLowerCase()}`
}
