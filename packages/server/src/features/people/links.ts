import { createHash } from 'node:crypto'
import { instantOf } from '../../platform/clock.ts'
import type { Queryable } from '../../platform/db/db.ts'
import type { Deps } from './ports.ts'
import { insertLink } from './store.ts'

/** How long a one-time link can be used. */
const linkMs = 600_000

const tokenBytes = 32

/**
 * Returns a new link that signs in the owner of this address, once, within ten minutes. Its token is stored as a hash only.
 *
 * @example
 * const url = await makeSignInLink(deps, db, { email: 'owner@example.com', baseUrl: 'https://pay.example.com' })
 */
export async function makeSignInLink(
  { clock, random }: Pick<Deps, 'clock' | 'random'>,
  db: Queryable,
  { email, baseUrl }: { readonly email: string; readonly baseUrl: string },
): Promise<string> {
  const token = Buffer.from(random.bytes(tokenBytes)).toString('base64url')
  const createdAt = clock.now()
  const expiresAt = instantOf(createdAt.getTime() + linkMs)
  await insertLink(db, { tokenHash: hashOfToken(token), email: email.toLowerCase(), createdAt, expiresAt })
  return `${baseUrl}/auth/link?token=${token}`
}

/** The stored form of a link's token. */
export function hashOfToken(token: string): Uint8Array {
  return createHash('sha256').update(token).digest()
}
