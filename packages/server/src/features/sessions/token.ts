import { createHash, timingSafeEqual } from 'node:crypto'
import { isId } from '../../platform/ids.ts'
import type { Random } from '../../platform/random.ts'
import type { SessionId } from './schema.ts'

const secretPattern = /^[A-Za-z0-9_-]{43}$/
const nobody = new Uint8Array(32)

/** A session's token: its id, a dot, and 256 random bits in base64url. Whoever has it has the access that was paid for. */
export function newSessionToken(sessionId: SessionId, random: Random): string {
  return `${sessionId}.${Buffer.from(random.bytes(32)).toString('base64url')}`
}

/** The session that a text claims to be the token of; undefined where it cannot be a token. */
export function sessionIdIn(token: string): SessionId | undefined {
  const dot = token.indexOf('.')
  const [sessionId, secret] = [token.slice(0, dot), token.slice(dot + 1)]
  return dot > 0 && isId('sess', sessionId) && secretPattern.test(secret) ? sessionId : undefined
}

/** What is stored of a token: SHA-256 of the whole of it. 256 random bits need no slower hash. */
export function hashOf(token: string): Uint8Array {
  return createHash('sha256').update(token).digest()
}

/** Whether the token is the one that was hashed; takes as long for a wrong one. */
export function isToken(token: string, stored: Uint8Array | null): boolean {
  return timingSafeEqual(hashOf(token), stored ?? nobody) && stored !== null
}
