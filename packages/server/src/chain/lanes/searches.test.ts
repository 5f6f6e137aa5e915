import type { Address } from '@purser/protocol'
import { expect, test } from 'vitest'
import { createSearches } from './searches.ts'

const address = (digit: string): Address => `0x${digit.repeat(40)}`

/** A search that ends when it is stopped. */
const untilStopped = (stopped: AbortSignal) =>
  new Promise<void>((resolve) => stopped.addEventListener('abort', () => resolve()))

test('an account has a share of the searches of a network, and a transaction one search', async () => {
  const searches = createSearches()
  const begun: string[] = []
  const begin = (id: string, sender: Address) =>
    searches.begin({ id, sender }, ({ stopped }) => {
      begun.push(id)
      return untilStopped(stopped)
    })
  for (const id of ['a', 'a', 'b', 'c', 'd', 'e']) begin(id, address('1'))
  begin('f', address('2'))
  expect(begun).toEqual(['a', 'b', 'c', 'd', 'f'])
  expect(['a', 'e', 'f'].map((id) => searches.isRunning(id))).toEqual([true, false, true])
  for (let number = 0; number < 40; number += 1) begin(`more ${number}`, address((number % 10).toString()))
  expect(begun).toHaveLength(32)
  await searches.stop()
  expect(searches.isRunning('a')).toBe(false)
  begin('late', address('3'))
  expect(begun).not.toContain('late')
})

test('a search that only waits for late nodes delays no other one of its account, and at most 16 of an account run', async () => {
  const searches = createSearches()
  const begun: string[] = []
  for (let number = 0; number < 20; number += 1)
    searches.begin({ id: String(number), sender: address('1') }, ({ stopped, wait }) => {
      begun.push(String(number))
      wait()
      return untilStopped(stopped)
    })
  expect(begun).toHaveLength(16)
  searches.begin({ id: 'other', sender: address('2') }, ({ stopped }) => untilStopped(stopped))
  expect(searches.isRunning('other')).toBe(true)
  await searches.stop()
})

test('a search ends with the state of its transaction, and no other one does', async () => {
  const searches = createSearches()
  const ended: string[] = []
  for (const id of ['a', 'b'])
    searches.begin({ id, sender: address('1') }, async ({ stopped }) => {
      await untilStopped(stopped)
      ended.push(id)
    })
  searches.end(['a', 'unknown'])
  await new Promise((resolve) => setImmediate(resolve))
  expect(ended).toEqual(['a'])
  expect(['a', 'b'].map((id) => searches.isRunning(id))).toEqual([false, true])
  await searches.stop()
})
