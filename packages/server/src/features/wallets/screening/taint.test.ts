import fc from 'fast-check'
import { expect, test } from 'vitest'
import { traceTaint } from './taint.ts'
import type { LedgerRow } from './taint-store.ts'

function came(id: string, rawAmount: bigint, rawTaint = 0n): LedgerRow {
  return { id, direction: 'in', rawAmount, rawTaint, txHash: id, logIndex: 0 }
}

function left(id: string, rawAmount: bigint): LedgerRow {
  return { id, direction: 'out', rawAmount, rawTaint: 0n, txHash: id, logIndex: 0 }
}

function traced(...ledger: readonly LedgerRow[]) {
  const { frozen, moved } = traceTaint(ledger)
  return { frozen: Object.fromEntries(frozen), moved: moved.map(({ rawTaint }) => rawTaint) }
}

test('tainted money that was spent freezes no later honest money', () => {
  expect(traced(came('bad', 5n, 5n), left('spent', 5n), came('honest', 5n))).toEqual({ frozen: {}, moved: [5n] })
})

test('clean money leaves first, and only what leaves beyond it is tainted', () => {
  expect(traced(came('clean', 4n), came('bad', 5n, 5n), left('one', 3n), left('two', 3n))).toEqual({
    frozen: { bad: 3n },
    moved: [0n, 2n],
  })
})

test('of two tainted amounts the older one leaves first', () => {
  expect(traced(came('old', 5n, 5n), came('new', 4n, 4n), left('some', 6n))).toEqual({
    frozen: { new: 3n },
    moved: [6n],
  })
})

test('for every ledger, what is frozen is never more than the balance, and no tainted unit is lost or made', () => {
  const Row = fc.record({ isIn: fc.boolean(), raw: fc.bigInt(1n, 20n), isTainted: fc.boolean() })
  fc.assert(
    fc.property(fc.array(Row, { maxLength: 30 }), (given) => {
      let balance = 0n
      const ledger = given.flatMap(({ isIn, raw, isTainted }, index) => {
        if (!isIn && raw > balance) return []
        balance += isIn ? raw : -raw
        return [isIn ? came(`${index}`, raw, isTainted ? raw : 0n) : left(`${index}`, raw)]
      })
      const { frozen, moved } = traceTaint(ledger)
      const sum = (all: Iterable<bigint>) => [...all].reduce((total, one) => total + one, 0n)
      const kept = sum(frozen.values())
      expect(kept <= balance).toBe(true)
      expect(kept + sum(moved.map(({ rawTaint }) => rawTaint))).toBe(sum(ledger.map(({ rawTaint }) => rawTaint)))
    }),
  )
})
