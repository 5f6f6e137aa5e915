import fc from 'fast-check'
import { expect, test } from 'vitest'
import { eventHash, eventsHeadOf, noEvents } from './event-chain.ts'
import vectors from './vectors/seal.json' with { type: 'json' }

const event = fc.record({
  eventId: fc.uuid(),
  type: fc.string({ maxLength: 20 }),
  timestamp: fc.integer({ min: 0, max: 2 ** 40 }).map(String),
  payload: fc.dictionary(fc.string({ maxLength: 5 }), fc.oneof(fc.string(), fc.integer(), fc.boolean()), {
    maxKeys: 3,
  }),
})
const stream = fc.uniqueArray(event, { minLength: 2, maxLength: 12, selector: ({ eventId }) => eventId })

test('the links of a known stream come out as another implementation computed them', () => {
  let previous = noEvents.hash
  for (const [index, of] of vectors.events.entries()) {
    previous = eventHash(previous, of)
    expect(previous).toBe(vectors.links[index])
  }
  expect(eventsHeadOf(vectors.events)).toEqual(vectors.proof.manifest.eventsHead)
})

test('the head of a stream with no events is a count of zero and no hash of anything', () => {
  expect(eventsHeadOf([])).toEqual({ count: 0, hash: '0'.repeat(64) })
})

test('a head reached in two steps is the head reached in one, and does not depend on the order of members', () => {
  fc.assert(
    fc.property(stream, fc.nat(), (events, at) => {
      const cut = at % (events.length + 1)
      const reversed = events.map((of) => Object.fromEntries(Object.entries(of).reverse()))
      expect(eventsHeadOf(reversed.slice(cut), eventsHeadOf(events.slice(0, cut)))).toEqual(eventsHeadOf(events))
    }),
  )
})

test('a stream with an event dropped, doubled, moved or changed has another head', () => {
  fc.assert(
    fc.property(stream, fc.nat(), (events, at) => {
      const index = at % events.length
      const one = events[index] ?? {}
      const [before, after] = [events.slice(0, index), events.slice(index + 1)]
      const changed = { ...one, type: `${'type' in one ? one.type : ''}.` }
      const others = [
        [...before, ...after],
        [...before, one, one, ...after],
        [...before, changed, ...after],
        [...after, one, ...before],
      ]
      const head = eventsHeadOf(events)
      for (const other of others) expect(eventsHeadOf(other).hash).not.toBe(head.hash)
    }),
  )
})

test('a link that is no hash and an event that JSON cannot hold are refused', () => {
  for (const previous of [
    '',
    '0'.repeat(63),
    '0'.repeat(65),
    'A'.repeat(64),
    `0x${'0'.repeat(62)}`,
    `${'0'.repeat(64)}\n`,
  ])
    expect(() => eventHash(previous, {})).toThrow(RangeError)
  expect(() => eventHash(noEvents.hash, { payload: 1n })).toThrow(TypeError)
})
