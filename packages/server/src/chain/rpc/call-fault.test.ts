import type { Address } from '@purser/protocol'
import { expect, test } from 'vitest'
import { isProblem } from '../../platform/errors.ts'
import { tryOne } from '../reads/call-trials.ts'
import { trySending } from '../reads/try-sending.ts'
import type { Rpc } from './rpc.ts'

const account: Address = '0x00000000000000000000000000000000000a11ce'
const call = { from: account, to: account, data: '0x', value: 0n, gasLimit: 21_000n } as const
const head = { number: 1n, timestampSeconds: 1n, baseFee: 1n }

/** A node that returns this error for each call. */
function failing(message: string): Rpc {
  const unused = () => Promise.reject(new Error('unused'))
  return {
    batch: async (calls) => calls.map(() => ({ ok: false, code: -32_000, message, data: undefined })),
    call: unused,
    result: unused,
    onOneNode: unused,
  }
}

test.each([
  ['execution reverted', 'the call'],
  ['VM execution error.', 'the call'],
  ['Reverted', 'the call'],
  ['out of gas', 'the call'],
  ['gas required exceeds allowance (21000)', 'the call'],
  ['invalid opcode: INVALID', 'the call'],
  ['invalid jump destination', 'the call'],
  ['insufficient funds for gas * price + value', 'the balance'],
  ['transfer value exceeds balance of sender', 'the balance'],
  ['execution aborted (timeout = 5s)', 'the node'],
  ['execution timeout', 'the node'],
  ['header not found', 'the node'],
  ['', 'the node'],
])('an error "%s" is a fault of %s, whichever read returns it', async (message, fault) => {
  const tried = await tryOne(failing(message), call).catch((error: unknown) => {
    if (isProblem(error, 'chain-unavailable')) return undefined
    throw error
  })
  expect(tried).toEqual(fault === 'the node' ? undefined : { ok: false, reason: null })
  // The sender of a settlement may have too little coin for the moment, which does not decide about the call.
  expect(await trySending(failing(message), call, head)).toBe(fault !== 'the call')
})
