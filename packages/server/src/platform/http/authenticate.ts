import { hash } from 'node:crypto'
import { parseApiKey } from '@purser/protocol'
import type { Environment } from '../ctx.ts'
import { failPlatform } from '../errors.ts'
import type { ApiKeyId, OrganisationId } from '../ids.ts'
import type { Scope } from '../roles.ts'

/** The organisation, environment and key of a caller. */
export interface Identity {
  readonly organisationId: OrganisationId
  readonly environment: Environment
  readonly apiKeyId: ApiKeyId
  /** The scopes to which the key is limited; null for a key with all scopes. */
  readonly scopes: readonly Scope[] | null
  readonly shareOwner: string
  /** Whether the operator has suspended the organisation. */
  readonly isSuspended: boolean
}

/** Looks a key up by the SHA-256 of its text; undefined if there is none, it is revoked or it has expired. */
export type FindKey = (keyHash: Uint8Array) => Promise<Identity | undefined>

/** A 401 whose detail begins with the same sentence for every reason. */
export function unauthorized(reason: string): Error {
  return failPlatform('unauthorized', { detail: `API key is invalid or missing: ${reason}.` })
}

/**
 * Returns the identity of `Authorization: Bearer <key>`. The check digits refuse a mistyped key without the database. The look-up is by
 * hash on every request, so that a revocation applies as soon as it is committed, in every process.
 */
export function createAuthenticate(
  findKey: FindKey,
  environments: readonly Environment[],
): (authorization: string | undefined) => Promise<Identity> {
  return async (authorization) => {
    if (authorization === undefined) throw unauthorized('send Authorization: Bearer <API key>')
    const token = /^Bearer +([\x21-\x7e]{1,256}) *$/i.exec(authorization)?.[1]
    if (token === undefined) throw unauthorized('the Authorization header is not a Bearer token')
    if (token.startsWith('vat_')) throw unauthorized('this is the token of a vault, which reads that vault alone')
    const parsed = parseApiKey(token)
    if (parsed === undefined) throw unauthorized('the key is malformed')
    if (!environments.includes(parsed.environment)) throw unauthorized('wrong environment for this deployment')
    const identity = await findKey(hash('sha256', token, 'buffer'))
    if (identity === undefined || identity.environment !== parsed.environment)
      throw unauthorized('the key is unknown, revoked or expired')
    return identity
  }
}
