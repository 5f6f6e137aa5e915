import { expect, test } from 'vitest'
import { isProblem } from '../../platform/errors.ts'
import { readReceipt } from './read.ts'

const hash = `0x${'ab'.repeat(32)}` as const
const place = { transactionHash: hash, blockHash: hash, blockNumber: '0x1', status: '0x1', logs: [] }
const ofEthereum = { ...place, gasUsed: '0xf4240', effectiveGasPrice: '0x2' }

function l1FeeOf(reported: Record<string, unknown>): bigint | undefined {
  return readReceipt({ ...ofEthereum, ...reported }, hash)?.l1Fee
}

test('a receipt without a data fee has a data fee of zero', () => {
  expect(l1FeeOf({})).toBe(0n)
  expect(l1FeeOf({ l1Fee: null, operatorFeeScalar: null, operatorFeeConstant: null })).toBe(0n)
})

test('the data fee is read from the receipt', () => {
  expect(l1FeeOf({ l1Fee: '0x1f' })).toBe(31n)
})

test('the operator fee is included, by the Isthmus formula or, for Jovian receipts, by the Jovian formula', () => {
  const parts = { l1Fee: '0x1', operatorFeeScalar: '0x3', operatorFeeConstant: '0x5' }
  expect(l1FeeOf(parts)).toBe(1n + 3n + 5n)
  expect(l1FeeOf({ ...parts, daFootprintGasScalar: '0x190' })).toBe(1n + 300_000_000n + 5n)
  expect(l1FeeOf({ ...parts, operatorFee: '0x7' }), 'taken as it is').toBe(1n + 7n)
})

test('a data fee that is not a quantity is an invalid answer, not a fee of zero', () => {
  for (const l1Fee of [7, '7', '0x', '-0x1', {}, `0x1${'0'.repeat(64)}`]) {
    let caught: unknown
    try {
      l1FeeOf({ l1Fee })
    } catch (error) {
      caught = error
    }
    expect(isProblem(caught, 'chain-unavailable'), JSON.stringify(l1Fee)).toBe(true)
  }
})
