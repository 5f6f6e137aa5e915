import { expect, test } from 'vitest'
import { type Attempt, oneAtATime, pauseAfterShortage } from './eviction-throttle.ts'
import type { FreedQuota } from './unmined-payments.ts'

function anAttempt(payer: string, freed: FreedQuota, changes: Partial<Attempt<string>> = {}): Attempt<string> {
  return { name: 'shop', payer, own: 5n, nowMs: 0, free: async () => freed, record: async () => payer, ...changes }
}

test('a payer whose own share stops it pauses no other payer', async () => {
  const attempt = pauseAfterShortage<string>()
  expect(await attempt(anAttempt('busy', 'too-little-for-payer'))).toBeUndefined()
  expect(await attempt(anAttempt('busy', 'some')), 'it is paused itself').toBeUndefined()
  expect(await attempt(anAttempt('buyer', 'some'))).toBe('buyer')
  expect(await attempt(anAttempt('busy', 'some', { nowMs: 5_000 }))).toBe('busy')
})

test('a payment that needs much pauses none that needs less, and each that needs as much', async () => {
  const attempt = pauseAfterShortage<string>()
  expect(await attempt(anAttempt('one', 'too-little'))).toBeUndefined()
  expect(await attempt(anAttempt('two', 'some')), 'as much').toBeUndefined()
  expect(await attempt(anAttempt('two', 'some', { own: 4n })), 'less').toBe('two')
})

test('attempts of one name run one after the other, also after one that failed', async () => {
  const attempt = oneAtATime(pauseAfterShortage<string>())
  const order: string[] = []
  const first = Promise.withResolvers<FreedQuota>()
  const free = (name: string, freed: Promise<FreedQuota>) => () => {
    order.push(name)
    return freed
  }
  const attempts = [
    attempt(anAttempt('a', 'some', { free: free('a', first.promise) })),
    attempt(anAttempt('b', 'some', { free: free('b', Promise.resolve('some')) })),
    attempt(anAttempt('c', 'some', { name: 'other', free: free('c', Promise.resolve('some')) })),
  ]
  expect(await attempts[2]).toBe('c')
  expect(order).toEqual(['a', 'c'])
  first.reject(new Error('the database is away'))
  expect((await Promise.allSettled(attempts)).map(({ status }) => status)).toEqual([
    'rejected',
    'fulfilled',
    'fulfilled',
  ])
})
