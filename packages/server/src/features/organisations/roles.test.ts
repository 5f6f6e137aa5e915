import { expect, test } from 'vitest'
import { actions, mayDo, type Role, roles } from './index.ts'

const allowed: Record<Role, readonly string[]> = {
  owner: [
    'read',
    'writeResources',
    'updateOrganisation',
    'manageMembers',
    'manageKeys',
    'manageBilling',
    'manageOwners',
  ],
  admin: ['read', 'writeResources', 'updateOrganisation', 'manageMembers', 'manageKeys'],
  member: ['read', 'writeResources'],
  viewer: ['read'],
}

test.each(roles)('an %s may do what its role says and nothing else', (role) => {
  expect(actions.filter((action) => mayDo(role, action))).toEqual(allowed[role])
})

test('each role may do all that the role below it may', () => {
  const [owner, admin, member, viewer] = roles.map((role) => actions.filter((action) => mayDo(role, action)))
  expect(owner).toEqual(expect.arrayContaining(admin ?? []))
  expect(admin).toEqual(expect.arrayContaining(member ?? []))
  expect(member).toEqual(expect.arrayContaining(viewer ?? []))
})
