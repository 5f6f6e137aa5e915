import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { AddressSet } from './address-set.ts'

const address = fc.uint8Array({ minLength: 20, maxLength: 20 })

function topicOf(bytes: Uint8Array): string {
  return `0x${'0'.repeat(24)}${Buffer.from(bytes).toString('hex')}`
}

test('it contains the added addresses and no others, at any size and with any seed', () => {
  const property = fc.property(
    fc.integer(),
    fc.array(address, { maxLength: 3_000, size: 'max' }),
    fc.array(address, { maxLength: 50 }),
    (seed, members, others) => {
      const set = new AddressSet(seed)
      set.addAll(Buffer.concat(members))
      set.addAll(Buffer.concat(members.slice(0, 10)))
      const known = new Set(members.map(topicOf).filter((topic) => !/^0x0+$/.test(topic)))
      expect(set.size).toBe(known.size)
      for (const member of members) expect(set.hasTopic(topicOf(member))).toBe(known.has(topicOf(member)))
      for (const other of others) expect(set.hasTopic(topicOf(other))).toBe(known.has(topicOf(other)))
    },
  )
  fc.assert(property, { numRuns: 20 })
})

test('addresses that differ in one byte are distinguished', () => {
  const first = randomBytes(20)
  const set = new AddressSet(7)
  set.addAll(first)
  for (let at = 0; at < 20; at++) {
    const other = Buffer.from(first)
    other[at] = (other[at] ?? 0) ^ 1
    expect(set.hasTopic(topicOf(other))).toBe(false)
  }
  expect(set.hasTopic(topicOf(first))).toBe(true)
  expect(set.hasTopic(topicOf(first).toUpperCase().replace('0X', '0x'))).toBe(true)
})

test.each([
  '',
  '0x',
  `0x${'0'.repeat(64)}`,
  `0x${'g'.repeat(64)}`,
  `0x${':'.repeat(64)}`,
  `0x${'@'.repeat(64)}`,
  `0x${'1'.repeat(63)}`,
])('the topic %j is in no set', (topic) => {
  const set = new AddressSet(1)
  set.addAll(randomBytes(20 * 100))
  set.addAll(new Uint8Array(20))
  expect(set.hasTopic(topic)).toBe(false)
  expect(set.size).toBe(100)
})
