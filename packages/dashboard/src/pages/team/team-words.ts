import type { Member } from '@purser/sdk'

export const membersKey = ['members'] as const

/** The display name of a member: the email address, or the account id if no address is known. */
export function memberName({ email, accountId }: Member): string {
  return email ?? accountId
}

/** `a viewer`, `an owner`. */
export function oneOfRole(role: Member['role']): string {
  return `${role === 'owner' || role === 'admin' ? 'an' : 'a'} ${role}`
}

/** Whether a person may not work in the live environment, because a test key made the invitation. */
export function worksInTestOnly({ environments }: Member): boolean {
  return !environments.includes('live')
}
