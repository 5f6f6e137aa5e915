import { expect, test } from 'vitest'
import type { Caller } from '../ctx.ts'
import { limitRefusalRecords } from './refusal-records.ts'
import { limitSettingChanges } from './setting-changes.ts'

const key = (name: string, environment: 'test' | 'live' = 'live') =>
  ({
    actor: { kind: 'api-key', apiKeyId: `key_${name}` },
    tenant: { organisationId: 'org_1', environment },
    shareOwner: 'acc_1',
  }) as unknown as Pick<Caller, 'actor' | 'shareOwner' | 'tenant'>

function aLimit() {
  let now = new Date(0)
  const clock = { now: () => now }
  return { clock, pass: (ms: number) => (now = new Date(now.getTime() + ms)), records: limitRefusalRecords(clock) }
}

test('refusals beyond the limit of a key are counted in its next record', () => {
  const { pass, records } = aLimit()
  const taken = Array.from({ length: 2_100 }, () => records.take(key('a')))
  expect([taken.filter((one) => one === 0).length, taken.at(-1), records.take(key('b'))]).toEqual([2_000, undefined, 0])
  pass(2_000)
  expect([records.take(key('a')), records.take(key('a'))]).toEqual([100, undefined])
  pass(2_000)
  expect(records.take(key('a'))).toBe(1)
})

test('test keys use up no records of live keys, and refusals no changes of settings', () => {
  const { clock, records } = aLimit()
  const settings = limitSettingChanges(clock)
  for (const name of ['a', 'b', 'c']) for (let time = 0; time < 2_000; time += 1) records.take(key(name, 'test'))
  expect([records.take(key('d', 'test')), records.take(key('e'))]).toEqual([undefined, 0])
  expect(() => settings.take(key('a', 'test'), 1)).not.toThrow()
})
