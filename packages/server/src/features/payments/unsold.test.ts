import { expect, test } from 'vitest'
import { plans } from '../plans/index.ts'
import { createUnsoldLimit } from './unsold.ts'

test('an owner’s payments that end unsold are ten months of the plan a day, a payer’s one; the allowance refills, and test payments take nothing from live ones', () => {
  let now = Date.UTC(2026, 0, 1)
  const unsold = createUnsoldLimit({ now: () => new Date(now) })
  const caller = (environment: 'test' | 'live') =>
    ({ placeOwner: 'acc_1', tenant: { organisationId: 'org_1', environment } }) as never
  for (let payer = 0; payer < 10; payer += 1) {
    expect(unsold.isUsedUpBy(caller('test'), `0x${payer}`)).toBe(false)
    unsold.count(caller('test'), plans.hobby, Array(101).fill(`0x${payer}`))
    expect(unsold.isUsedUpBy(caller('test'), `0x${payer}`)).toBe(true)
  }
  expect(unsold.waitOf(caller('test'))).toBeGreaterThan(0)
  expect(unsold.waitOf(caller('live'))).toBeUndefined()
  expect(unsold.isUsedUpBy(caller('live'), '0x1')).toBe(false)
  unsold.count(caller('live'), plans.pro, Array(10_100).fill('0x1'))
  expect(unsold.waitOf(caller('live'))).toBeUndefined()
  expect(unsold.isUsedUpBy(caller('live'), '0X1')).toBe(true)
  now += 86_400_000
  expect(unsold.waitOf(caller('test'))).toBeUndefined()
  expect(unsold.isUsedUpBy(caller('test'), '0x1')).toBe(false)
})
