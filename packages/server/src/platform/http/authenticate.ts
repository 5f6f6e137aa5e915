import { hash } from 'node:crypto'
import { parseApiKey } from '@purser/protocol'
import type { Environment } from '../ctx.ts'
import { failPlatform } from '../errors.ts'
import type { ApiKeyId, OrganisationId } from '../ids.ts'

/** Whose key it is. */
export interface Identity {
  readonly organisationId: OrganisationId
  readonly environment: Environment
  readonly apiKeyId: ApiKeyId
}

/** Looks a key up by the SHA-256 of its text; undefined when there is none or it is revoked. */
export type FindKey = (keyHash: Uint8Array) => Promise<Identity | undefined>

/** A 401 whose detail begins as the document says, whatever the reason. */
export function unauthorized(reason: string): Error {
  return failPlatform('unauthorized', { detail: `API key is invalid or missing: ${reason}.` })
}

/**
 * The identity behind `Authorization: Bearer <key>`. The check digits refuse a mistyped key without the database; the
 * look-up is by hash on every request, so a revocation holds from the moment it is committed, on every process.
 */
export function createAuthenticate(
  findKey: FindKey,
  environments: readonly Environment[],
): (authorization: string | undefined) => Promise<Identity> {
  return async (authorization) => {
    if (authorization === undefined) throw unauthorized('send Authorization: Bearer <API key>')
    const token = /^Bearer +([\x21-\x7e]{1,256}) *$/i.exec(authorization)?.[1]
    if (token === undefined) throw unauthorized('the Authorization header is not a Bearer token')
    const parsed = parseApiKey(token)
    if (parsed === undefined) throw unauthorized('the key is malformed')
    if (!environments.includes(parsed.environment)) throw unauthorized('wrong environment for this deployment')
    const identity = await findKey(hash('sha256', token, 'buffer'))
    if (identity === undefined || identity.environment !== parsed.environment)
      throw unauthorized('the key is unknown or revoked')
    return identity
  }
}
