import type { AccountId, ApiKeyId, OrganisationId } from './ids.ts'

/** The actor of a change, for the audit log. */
export type Actor =
  | { readonly kind: 'api-key'; readonly apiKeyId: ApiKeyId }
  /** The bearer of a token, link or ticket that gives access to one resource; `guestId` identifies it. */
  | { readonly kind: 'guest'; readonly guestId: string }
  /** A person who is signed in. */
  | { readonly kind: 'person'; readonly accountId: AccountId }
  | { readonly kind: 'operator' }
  | { readonly kind: 'system' }

/** The tenant whose rows a statement may read and write. Every store function takes it right after the database handle. */
export interface Tenant {
  readonly organisationId: OrganisationId
  readonly environment: Environment
}

export type Environment = 'test' | 'live'
