import { type Address, bytesToHex, type Hex } from '@purser/protocol'
import { serializeTransaction } from 'viem/utils'
import { expect, test } from 'vitest'
import { chanceOf } from '../../test/sim/chance.ts'
import type { TransactionFields } from '../chain/port.ts'
import { encodeTransaction } from './eip-1559.ts'

const chance = chanceOf(1559)

/** As many bytes, the first of which are sometimes zero. */
function bytes(length: number): Uint8Array {
  const drawn = Uint8Array.from(chance.bytes(length))
  return chance.happens(0.3) ? drawn.fill(0, 0, chance.below(length + 1)) : drawn
}

/** An integer below 2^(8 * bytesMax), of any length. */
function integer(bytesMax: number): bigint {
  return BigInt(`0x0${bytesToHex(bytes(chance.below(bytesMax + 1))).slice(2)}`)
}

function someFields(): TransactionFields {
  const [left, right] = [integer(10), integer(10)]
  return {
    chainId: 1 + chance.below(100_000),
    nonce: integer(6),
    maxPriorityFeePerGas: left < right ? left : right,
    maxFeePerGas: left < right ? right : left,
    gasLimit: integer(7),
    to: chance.happens(0.1) ? null : (bytesToHex(bytes(20)) as Address),
    value: integer(32),
    data: bytesToHex(bytes(chance.below(chance.happens(0.1) ? 70_000 : 200))),
  }
}

test('a transaction is encoded as viem does, unsigned and signed', () => {
  for (let turn = 0; turn < 500; turn++) {
    const fields = someFields()
    const { chainId, nonce, to, data, value, gasLimit: gas, maxFeePerGas, maxPriorityFeePerGas } = fields
    const prices = { maxFeePerGas, maxPriorityFeePerGas }
    const same = { type: 'eip1559', chainId, nonce: Number(nonce), to, data, value, gas, ...prices } as const
    const encoded = encodeTransaction(fields)
    expect(bytesToHex(encoded.unsigned)).toBe(serializeTransaction(same))
    const signature = Uint8Array.from([...bytes(32), ...bytes(32)])
    // No curve makes a part of zero, which viem encodes as another number.
    for (const last of [31, 63]) signature[last] ||= 1
    const yParity = chance.happens(0.5) ? 0 : 1
    const [r, s] = [bytesToHex(signature.subarray(0, 32)), bytesToHex(signature.subarray(32))]
    expect(bytesToHex(encoded.signed({ signature, yParity }))).toBe(serializeTransaction(same, { r, s, yParity }))
  }
})

const plain = { ...someFields(), maxPriorityFeePerGas: 1n, maxFeePerGas: 2n, to: null }

test.each<[string, Partial<TransactionFields>]>([
  ['a recipient that is no address', { to: '0x12' }],
  ['a recipient of 21 bytes', { to: `0x${'11'.repeat(21)}` }],
  ['a priority fee above the maximum', { maxPriorityFeePerGas: 3n }],
  ['a negative value', { value: -1n }],
  ['a value of 257 bits', { value: 1n << 256n }],
  ['half a byte of data', { data: '0x1' as Hex }],
  ['data that is not hexadecimal', { data: '0xzz' as Hex }],
])('%s is not encoded', (_name, changed) => {
  expect(() => encodeTransaction({ ...plain, ...changed })).toThrow(RangeError)
})
