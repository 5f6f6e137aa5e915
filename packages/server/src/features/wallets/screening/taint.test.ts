import fc from 'fast-check'
import { expect, test } from 'vitest'
import { distribute } from './freeze.ts'
import { traceTaint } from './taint.ts'
import type { LedgerRow } from './taint-store.ts'

const nothing = { block: 0n, rawBalance: 0n, rawTainted: 0n, rawLeft: 0n }

function came(id: string, rawAmount: bigint, rawTaint = 0n): LedgerRow {
  return { direction: 'in', rawAmount, rawTaint, txHash: id, logIndex: 0, block: 1n }
}

function left(id: string, rawAmount: bigint): LedgerRow {
  return { direction: 'out', rawAmount, rawTaint: 0n, txHash: id, logIndex: 0, block: 1n }
}

function traced(...ledger: readonly LedgerRow[]) {
  const { end, moved } = traceTaint(nothing, ledger)
  const tainted = ledger.filter(({ rawTaint }) => rawTaint > 0n)
  const { changed } = distribute(
    end.rawLeft,
    tainted.map(({ txHash: id, rawTaint }) => ({ id, rawTaint, rawFrozen: 0n })),
  )
  return { frozen: Object.fromEntries(changed), moved: moved.map(({ rawTaint }) => rawTaint) }
}

test('spent tainted money freezes no later clean money', () => {
  expect(traced(came('bad', 5n, 5n), left('spent', 5n), came('honest', 5n))).toEqual({ frozen: {}, moved: [5n] })
})

test('clean money leaves first, and only the excess is tainted', () => {
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

const Movements = fc.array(fc.record({ isIn: fc.boolean(), raw: fc.bigInt(1n, 20n), isTainted: fc.boolean() }), {
  maxLength: 30,
})

function ledgerOf(movements: readonly { readonly isIn: boolean; readonly raw: bigint; readonly isTainted: boolean }[]) {
  let balance = 0n
  return movements.flatMap(({ isIn, raw, isTainted }, index) => {
    if (!isIn && raw > balance) return []
    balance += isIn ? raw : -raw
    return [isIn ? came(`${index}`, raw, isTainted ? raw : 0n) : left(`${index}`, raw)]
  })
}

test('for every ledger the frozen amount never exceeds the balance, and no tainted unit is lost or created', () => {
  fc.assert(
    fc.property(Movements, (movements) => {
      const ledger = ledgerOf(movements)
      const { end, moved } = traceTaint(nothing, ledger)
      const sum = (all: readonly { readonly rawTaint: bigint }[]) =>
        all.reduce((total, { rawTaint }) => total + rawTaint, 0n)
      expect(end.rawTainted <= end.rawBalance).toBe(true)
      expect(end.rawTainted + sum(moved)).toBe(sum(ledger))
    }),
  )
})

test('a ledger that is traced in parts ends like one that is traced at once', () => {
  fc.assert(
    fc.property(Movements, fc.nat(30), (movements, cut) => {
      const ledger = ledgerOf(movements)
      const first = traceTaint(nothing, ledger.slice(0, cut))
      const second = traceTaint(first.end, ledger.slice(cut))
      const whole = traceTaint(nothing, ledger)
      expect(second.end).toEqual(whole.end)
      expect([...first.moved, ...second.moved]).toEqual(whole.moved)
    }),
  )
})
