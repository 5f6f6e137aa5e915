import { createHash } from 'node:crypto'
import { instantOf } from '../../platform/clock.ts'
import type { Queryable } from '../../platform/db/db.ts'
import type { Deps } from './ports.ts'
import { insertLink, type NewLink } from './store.ts'

/** Milliseconds for which a one-time link can be used. */
export const linkMs = 600_000

const tokenBytes = 32

/**
 * Returns a new link that signs in the owner of this address, once, within ten minutes. Its token is stored as a hash only.
 *
 * @example
 * const url = await makeSignInLink(deps, db, { email: 'owner@example.com', baseUrl: 'https://pay.example.com' })
 */
export async function makeSignInLink(
  deps: Pick<Deps, 'clock' | 'random'>,
  db: Queryable,
  about: { readonly email: string; readonly baseUrl: string },
): Promise<string> {
  const { url, link } = newSignInLink(deps, about)
  await insertLink(db, link)
  return url
}

/**
 * Returns a new link and its row. The link is valid once the row is stored. `browser` is the secret of the browser that requested it, if one did.
 */
export function newSignInLink(
  { clock, random }: Pick<Deps, 'clock' | 'random'>,
  { email, baseUrl, browser }: { readonly email: string; readonly baseUrl: string; readonly browser?: string },
): { readonly url: string; readonly link: NewLink } {
  const token = newSecret(random)
  const createdAt = clock.now()
  const expiresAt = instantOf(createdAt.getTime() + linkMs)
  const browserHash = browser === undefined ? null : hashOfToken(browser)
  const link = { tokenHash: hashOfToken(token), email: email.toLowerCase(), browserHash, createdAt, expiresAt }
  return { url: `${baseUrl}/auth/link?token=${token}`, link }
}

/** Returns a new token of a link, or a new secret of a browser. */
export function newSecret(random: Deps['random']): string {
  return Buffer.from(random.bytes(tokenBytes)).toString('base64url')
}

/** The stored form of a link's token, and of a browser's secret. */
export function hashOfToken(token: string): Uint8Array {
  return createHash('sha256').update(token).digest()
}
