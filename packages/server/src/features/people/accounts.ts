import { type AccountId, newId } from '../../platform/ids.ts'
import { upsertAccount } from '../organisations/index.ts'
import type { Deps } from './ports.ts'
import { findAccountOfUser, lockAccountOf, markUser, type UserRow } from './store.ts'

/**
 * Returns the account of a user whose address is verified: the linked one, otherwise the account with that address, which is created if there is
 * none. Idempotent, so that the next sign-in completes the work of a crash between the two.
 */
export function accountOf(
  deps: Pick<Deps, 'db' | 'clock' | 'random'>,
  { id: userId, email, name, emailVerified }: UserRow,
): Promise<AccountId> {
  return deps.db.tx(async (tx) => {
    const joined = await findAccountOfUser(tx, userId)
    if (joined !== undefined) return joined.id
    if (!emailVerified) throw new Error('an account is linked only by a verified address')
    const now = deps.clock.now()
    const person = { id: newId('acc', deps), email, name: name === '' ? null : name }
    await upsertAccount(tx, { ...person, acceptedAt: now, createdAt: now })
    const account = await lockAccountOf(tx, email)
    if (account === undefined) throw new Error('the account of a user is gone')
    if (account.userId !== null && account.userId !== userId) throw new Error('the account belongs to another user')
    await markUser(tx, account.id, userId)
    return account.id
  })
}
