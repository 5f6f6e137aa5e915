import { expect, test } from 'vitest'
import { challengeIdSlots } from '../src/challenge-id-slots.ts'
import { decodeHeader, encodeHeader } from '../src/middleware/headers.ts'

const ids = ['a', 'b'].map((letter) => letter.repeat(66))

test.each([
  ['one offer', 1, 'Goods'],
  ['four offers', 4, 'Goods'],
  ['other lengths before it', 2, 'Goods é'],
  ['an emoji before it', 3, 'Goods 😀'],
  ['text that looks like an id', 2, `"challengeId":"${'x'.repeat(66)}"`],
])('with %s each id is in every offer, and nothing else changes', (_, count, description) => {
  const offers = Array.from({ length: count }, (_, index) => ({
    scheme: 'exact',
    amount: String(10 ** index),
    extra: { name: 'USDC' },
  }))
  const required = {
    x402Version: 2,
    resource: { url: 'http://shop.test/paid', description },
    accepts: offers,
    extensions: {},
  }
  const withId = challengeIdSlots(encodeHeader(required))
  for (const challengeId of ids) {
    const accepts = offers.map((offer) => ({ ...offer, extra: { ...offer.extra, challengeId } }))
    expect(decodeHeader(withId?.(challengeId) ?? '')).toEqual({ ...required, accepts })
  }
})

test('an id of another length, and a header without offers, change nothing', () => {
  const header = encodeHeader({ accepts: [{ extra: {} }] })
  expect(challengeIdSlots(header)?.('short')).toBe(header)
  expect(challengeIdSlots('no base64!')).toBeUndefined()
  expect(challengeIdSlots(encodeHeader({}))).toBeUndefined()
})
