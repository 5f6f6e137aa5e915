import { z } from 'zod'

export const roles = ['owner', 'admin', 'member', 'viewer'] as const
export const Role = z.enum(roles)
export type Role = z.output<typeof Role>

/**
 * What a person signed in to the dashboard may want to do. `manageOwners` is making, demoting and removing owners;
 * `manageBilling` is changing the plan or how it is paid, not reading it.
 */
export const actions = [
  'read',
  'writeResources',
  'updateOrganisation',
  'manageMembers',
  'manageKeys',
  'manageBilling',
  'manageOwners',
] as const
export type Action = (typeof actions)[number]

const granted: Readonly<Record<Role, readonly Action[]>> = {
  owner: actions,
  admin: ['read', 'writeResources', 'updateOrganisation', 'manageMembers', 'manageKeys'],
  member: ['read', 'writeResources'],
  viewer: ['read'],
}

/**
 * Whether a role allows an action. Roles bind people who are signed in; an API key has full access to its organisation,
 * so this is not asked for keys.
 */
export function mayDo(role: Role, action: Action): boolean {
  return granted[role].includes(action)
}
