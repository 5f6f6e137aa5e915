import { formatChallenges, parseChallenges } from '@purser/protocol'
import { expect, test } from 'vitest'
import { offersFor, splitChallenges } from '../src/middleware/offers.ts'
import { mppOffers } from './fake-purser.ts'

const resource = 'https://api.example.com/weather'

test('joined challenges are split where they were joined, whatever their texts say', () => {
  const trap = 'Cheap, Payment id="x", \\"quoted\\", Payment realm="y'
  const offers = [...mppOffers({ resource }), ...mppOffers({ resource })].map((offer) => ({
    ...offer,
    description: trap,
  }))
  const split = splitChallenges(formatChallenges(offers))
  expect(split.flatMap((value) => parseChallenges(value))).toEqual(offers)
  expect(split.every((value) => value.startsWith('Payment '))).toBe(true)
})

test('one challenge stays as it is, and none gives none', () => {
  const [offer] = mppOffers({ resource })
  const value = formatChallenges(offer === undefined ? [] : [offer])
  expect(offersFor(value, 'stripe/charge')).toEqual([value])
  expect(offersFor(null, undefined)).toEqual([])
  expect(offersFor('', 'evm/charge')).toEqual([])
})
