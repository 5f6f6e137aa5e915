import fc from 'fast-check'
import { expect, test } from 'vitest'
import * as AcceptPayment from '../../node_modules/mppx/dist/internal/AcceptPayment.js'
import { orderOffers } from './accept-payment.ts'

const offers = [
  { method: 'tempo', intent: 'charge' },
  { method: 'evm', intent: 'charge' },
  { method: 'evm', intent: 'session' },
  { method: 'tempo', intent: 'session' },
]
const [tempoCharge, evmCharge, evmSession, tempoSession] = offers

test('offers are filtered and ordered as the payer prefers', () => {
  expect(orderOffers(offers, 'evm/charge, tempo/charge;q=0.5')).toEqual([evmCharge, tempoCharge])
  expect(orderOffers(offers, 'tempo/charge;q=0.1, evm/charge')).toEqual([evmCharge, tempoCharge])
  expect(orderOffers(offers, '*/charge')).toEqual([tempoCharge, evmCharge])
  expect(orderOffers(offers, '*/*;q=0.1, evm/*')).toEqual([evmCharge, evmSession, tempoCharge, tempoSession])
  expect(orderOffers(offers, '*/*, */session;q=0')).toEqual([tempoCharge, evmCharge])
  expect(orderOffers(offers, ' tempo / charge ; q = 0.5 ; v=1 ,, evm/charge;q=1.000')).toEqual([evmCharge, tempoCharge])
})

test('the most specific entry decides, whatever its position', () => {
  expect(orderOffers(offers, 'tempo/*, tempo/charge;q=0')).toEqual([tempoSession])
  expect(orderOffers(offers, 'tempo/charge;q=0, tempo/*')).toEqual([tempoSession])
})

test('of entries that are equally specific the highest counts, in either order', () => {
  for (const header of [
    'tempo/charge;q=0.5, evm/charge;q=0.1, evm/charge;q=0.9',
    'evm/charge;q=0.9, evm/charge;q=0.1, tempo/charge;q=0.5',
    'evm/*;q=0.1, */charge;q=0.9, tempo/charge;q=0.5, evm/session;q=0',
  ])
    expect(orderOffers(offers, header), header).toEqual([evmCharge, tempoCharge])
})

test('without the header, with one that cannot be read, or where nothing fits, the offers stay as they are', () => {
  for (const header of [
    undefined,
    '',
    ',',
    'stripe/charge',
    '*/*;q=0',
    'tempo',
    'tempo/charge/x',
    'Tempo/charge',
    'evm/charge, tempo/charge;q=2',
    'evm/charge, tempo/charge;q=0.1234',
    'evm/charge, tempo/charge;q=-1',
    'evm/charge;q',
    'evm/charge;q=',
    'evm/charge;=1',
    '/charge',
    `evm/charge${' '.repeat(4_096)}`,
  ])
    expect(orderOffers(offers, header), header).toBe(offers)
})

test('the order is that of mppx for every header that mppx can read', () => {
  const token = fc.constantFrom('*', 'tempo', 'evm', 'charge', 'session', 'x-1', 'UP', 'a_b')
  const space = fc.constantFrom('', ' ', '\t ')
  const q = fc.constantFrom('', ';q=0', ';q=0.5', '; q = 0.25', ';q=1', ';q=1.0', ';v=2', ';q=0.1;q=0.9', ';q=7', ';x')
  const entry = fc
    .tuple(space, token, space, token, q)
    .map(([a, method, b, intent, weight]) => `${a}${method}${b}/${b}${intent}${weight}`)
  const header = fc.array(entry, { minLength: 1, maxLength: 6 }).map((entries) => entries.join(','))
  let read = 0
  fc.assert(
    fc.property(header, fc.shuffledSubarray(offers, { minLength: 1 }), (value, given) => {
      const preferences = officialParse(value)
      const ranked = preferences === undefined ? [] : AcceptPayment.rank(given.map(named), preferences)
      if (preferences !== undefined) read += 1
      const expected = ranked.length === 0 ? given : ranked.map(({ method, intent }) => ({ method, intent }))
      expect(orderOffers(given, value)).toEqual(expected)
    }),
    { numRuns: 2_000 },
  )
  expect(read).toBeGreaterThan(100)
})

function named(offer: { readonly method: string; readonly intent: string }) {
  return { ...offer, name: offer.method }
}

function officialParse(value: string) {
  try {
    return AcceptPayment.parse(value)
  } catch {
    return undefined
  }
}
