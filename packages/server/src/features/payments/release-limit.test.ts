import { expect, test } from 'vitest'
import { plans } from '../plans/index.ts'
import { createReleaseLimit } from './release-limit.ts'

test('an owner may release ten months of the plan a day, at least 10,000, and a payer’s part is a tenth; the allowance refills, and test payments take nothing from live ones', () => {
  let now = Date.UTC(2026, 0, 1)
  const limit = createReleaseLimit({ now: () => new Date(now) })
  const caller = (environment: 'test' | 'live') =>
    ({ shareOwner: 'acc_1', tenant: { organisationId: 'org_1', environment } }) as never
  const release = (times: number, ...[environment, plan, payer]: ['test' | 'live', 'hobby' | 'pro', string]) => {
    for (let index = 0; index < times; index += 1) limit.count(caller(environment), plans[plan], payer)
  }
  for (let payer = 0; payer < 10; payer += 1) {
    release(1_000, 'test', 'hobby', `0x${payer}`)
    expect(limit.waitOfPayer(caller('test'), `0x${payer}`), 'a thousand').toBeUndefined()
    release(1, 'test', 'hobby', `0x${payer}`)
    expect(limit.waitOfPayer(caller('test'), `0x${payer}`)).toBe(87)
  }
  expect(limit.waitOf(caller('test'))).toBe(87)
  expect(limit.waitOf(caller('live'))).toBeUndefined()
  expect(limit.waitOfPayer(caller('live'), '0x1')).toBeUndefined()
  release(10_100, 'live', 'pro', '0x1')
  expect(limit.waitOf(caller('live'))).toBeUndefined()
  expect(limit.waitOfPayer(caller('live'), '0X1')).toBeGreaterThan(0)
  now += 86_400_000
  expect(limit.waitOf(caller('test'))).toBeUndefined()
  expect(limit.waitOfPayer(caller('test'), '0x1')).toBeUndefined()
})
