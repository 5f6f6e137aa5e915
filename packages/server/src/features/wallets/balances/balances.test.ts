import { expect, test } from 'vitest'
import { partsOf } from './balances.ts'

const nothing = { available: 0n, reserved: 0n, unscreened: 0n, frozen: 0n, notFinal: 0n }

test('the parts are those of the funds where the balance is that of their block', () => {
  const funds = { available: 3n, reserved: 2n, unscreened: 4n, frozen: 5n, notFinal: 6n }
  expect(partsOf(20n, funds)).toEqual(funds)
})

test('money that arrived after the block of the funds is not final', () => {
  const funds = { ...nothing, available: 6n, reserved: 4n }
  expect(partsOf(15n, funds)).toEqual({ ...funds, notFinal: 5n })
})

test('money that left after the block of the funds was reserved there, and otherwise was available', () => {
  const funds = { ...nothing, available: 6n, reserved: 4n }
  expect(partsOf(6n, funds)).toEqual({ ...nothing, available: 6n })
  expect(partsOf(4n, funds)).toEqual({ ...nothing, available: 4n })
})

test('holds and reservations above the balance leave nothing available', () => {
  expect(partsOf(10n, { ...nothing, available: -2n, reserved: 12n })).toEqual({ ...nothing, reserved: 10n })
  expect(partsOf(3n, { ...nothing, available: -9n, frozen: 5n, reserved: 4n, unscreened: 3n })).toEqual({
    ...nothing,
    frozen: 3n,
  })
})

test('whatever the funds are, the parts add up to the balance and none is negative', () => {
  const amounts = [0n, 1n, 3n, 7n]
  for (const available of [-5n, ...amounts])
    for (const reserved of amounts)
      for (const unscreened of amounts)
        for (const frozen of amounts)
          for (const notFinal of amounts)
            for (const balance of [0n, 2n, 5n, 30n]) {
              const parts = Object.values(partsOf(balance, { available, reserved, unscreened, frozen, notFinal }))
              expect(parts.reduce((sum, part) => sum + part, 0n)).toBe(balance)
              expect(parts.every((part) => part >= 0n)).toBe(true)
            }
})
