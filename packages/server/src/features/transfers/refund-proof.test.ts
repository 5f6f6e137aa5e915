import { expect, test } from 'vitest'
import { isRefundOf } from './refund-proof.ts'

test.each<[string, bigint, { own: bigint; taken?: bigint[]; failing?: bigint[] }, boolean]>([
  ['the whole amount', 50n, { own: 50n }, true],
  ['the amount less two percent', 49n, { own: 50n }, true],
  ['less than that', 48n, { own: 50n }, false],
  ['the larger refund of another transfer', 50n, { own: 5n, failing: [50n] }, false],
  ['the refund of several transfers in one payment', 155n, { own: 5n, failing: [50n, 100n] }, true],
  ['the rest of a refund that another transfer has taken in part', 55n, { own: 5n, taken: [50n] }, true],
  ['a refund that another transfer has taken whole', 50n, { own: 50n, taken: [50n] }, false],
  ['more than all of them sent', 200n, { own: 5n, failing: [50n, 100n] }, false],
])('a payment of %s is a refund of a transfer or not', (_, rawBack, { own, taken = [], failing = [] }, expected) => {
  expect(isRefundOf(rawBack, { own, taken, failing })).toBe(expected)
})
