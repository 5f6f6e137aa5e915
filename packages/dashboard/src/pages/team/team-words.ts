import type { Member } from '@purser/sdk'

export const membersKey = ['members'] as const

/** How a page names a person: by the address, or by the account where no address is known. */
export function memberName({ email, accountId }: Member): string {
  return email ?? accountId
}
