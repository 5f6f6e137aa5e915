import { createHash, timingSafeEqual } from 'node:crypto'
import { isId } from '../../platform/ids.ts'
import type { Random } from '../../platform/random.ts'
import type { SessionId } from './schema.ts'

const secretPattern = /^[A-Za-z0-9_-]{43}$/
const nobody = new Uint8Array(32)

/**
 * Returns a session's token: its id, a dot, and 256 random bits in base64url. Its bearer has the access that was paid for.
 */
export function newSessionToken(sessionId: SessionId, random: Random): string {
  return `${sessionId}.${Buffer.from(random.bytes(32)).toString('base64url')}`
}

/** Returns the session that a token names; undefined if the text cannot be a token. */
export function sessionIdIn(token: string): SessionId | undefined {
  const dot = token.indexOf('.')
  const [sessionId, secret] = [token.slice(0, dot), token.slice(dot + 1)]
  return dot > 0 && isId('sess', sessionId) && secretPattern.test(secret) ? sessionId : undefined
}

/** Returns the stored hash of a token: SHA-256 of all of it. 256 random bits need no slower hash. */
export function hashOf(token: string): Uint8Array {
  return createHash('sha256').update(token).digest()
}

/** Whether the token has the stored hash; in constant time. */
export function isToken(token: string, stored: Uint8Array | null): boolean {
  return timingSafeEqual(hashOf(token), stored ?? nobody) && stored !== null
}
