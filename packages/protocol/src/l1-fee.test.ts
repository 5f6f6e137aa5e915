import { expect, test } from 'vitest'
import { l1FeeOf, l1ShareBytes } from './l1-fee.ts'

/** Specifications, Fjord, L1-Cost fees: an upper bound by the unsigned size, for a price of 10^6 for each millionth of a byte. */
function upperBound(unsignedBytes: number): bigint {
  const signed = unsignedBytes + 68
  const estimated = 836_500 * (signed + Math.floor(signed / 255) + 16) - 42_585_600
  return BigInt(Math.max(estimated, 100_000_000))
}

test('no transaction is counted for less than the network takes for it at most, and none of a token for more than twice that', () => {
  const share = upperBound(l1ShareBytes)
  for (let dataBytes = 0; dataBytes < 20_000; dataBytes++)
    expect(l1FeeOf(share, dataBytes), `${dataBytes} bytes`).toBeGreaterThanOrEqual(upperBound(dataBytes + 98))
  expect(l1FeeOf(share, 68)).toBeLessThan(upperBound(68 + 98) * 2n)
})

test('where nothing is taken for a share, nothing is for a transaction of any length', () => {
  expect(l1FeeOf(0n, 100_000)).toBe(0n)
})
