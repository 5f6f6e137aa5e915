import { expect, test } from 'vitest'
import { operations } from '../../operations.ts'
import { Problem } from '../errors.ts'
import { limitSettingChanges } from './setting-changes.ts'

/** Audit row S6: changes of settings leave rows and audit records that nothing deletes. */

test('S6: an owner makes 5,000 changes at once and then one a second, and others are not affected', () => {
  let now = new Date(0)
  const settings = limitSettingChanges({ now: () => now })
  const check = (owner: string): unknown => {
    try {
      settings.check(owner)
      return 'admitted'
    } catch (error) {
      return error instanceof Problem ? error.members.retryAfterSeconds : error
    }
  }
  for (let time = 0; time < 1_001; time += 1) settings.count('org_1', 5)
  settings.count('org_1', undefined)
  expect([check('org_1'), check('org_2')]).toEqual([5, 'admitted'])
  now = new Date(5_000)
  expect(check('org_1')).toBe('admitted')
})

test('what ends access is never refused by the limit of changes: a leaked key could use it up', () => {
  const ending = ['organisations.members.remove', 'organisations.apiKeys.revoke', 'organisations.apiKeys.revokeIn']
  const found = operations.filter(({ id }) => ending.includes(id))
  expect(found.map(({ id, settingCost }) => [id, settingCost])).toEqual(ending.map((id) => [id, undefined]))
})

test('each operation that changes a record by PATCH or PUT has a cost, unless its record ends or has a limit of its own', () => {
  const changing = operations.filter(
    ({ method, settingCost }) => /^(PATCH|PUT)$/.test(method) && settingCost === undefined,
  )
  expect(changing.map(({ id }) => id)).toEqual(['vaults.update'])
  const made = operations.find(({ id }) => id === 'withdrawals.bankAccounts.create')
  expect(made?.settingCost).toBe(5)
})
