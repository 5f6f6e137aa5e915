import { call, path } from './call.ts'
import { type Listing, listing, type PageQuery } from './paging.ts'
import type { CallOptions, Send } from './transport.ts'

export type Environment = 'test' | 'live'
export type Role = 'owner' | 'admin' | 'member' | 'viewer'

export interface Organisation {
  readonly id: string
  readonly name: string
  readonly type: 'personal' | 'team' | 'enterprise'
  readonly plan: string
  readonly createdAt: string
}

export interface Member {
  readonly accountId: string
  readonly email: string
  readonly role: Role
  readonly status: string
  readonly createdAt: string
}

export interface ApiKeyRecord {
  readonly id: string
  readonly name: string
  readonly environment: Environment
  readonly last4: string
  readonly createdAt: string
  readonly lastUsedAt: string | null
  readonly revokedAt: string | null
}

/** A new key, with its secret: this answer is the only one that ever shows it. */
export interface NewApiKey {
  readonly id: string
  readonly name: string
  readonly key: string
  readonly createdAt: string
  readonly environment?: Environment
}

export interface AuditRecord {
  readonly [member: string]: unknown
}

type NewMember = ({ readonly accountId: string } | { readonly email: string }) & { readonly role: Role }

/** The operations on the calling key's organisation, its members and its keys. */
export function organisationsOf(send: Send) {
  const current = '/organisations/current'
  return {
    create: (body: { readonly name: string; readonly type?: Organisation['type'] }, options?: CallOptions) =>
      call<Organisation & { readonly apiKeys: readonly NewApiKey[] }>(send, 'POST', '/organisations', {
        ...options,
        body,
      }),
    current: (options?: CallOptions) => call<Organisation>(send, 'GET', current, options),
    update: (body: { readonly name: string }, options?: CallOptions) =>
      call<Organisation>(send, 'PATCH', current, { ...options, body }),
    auditLog: (query?: PageQuery, options?: CallOptions): Listing<AuditRecord> =>
      listing(send, `${current}/audit-log`, query, options),
    members: {
      list: (query?: PageQuery, options?: CallOptions): Listing<Member> =>
        listing(send, `${current}/members`, query, options),
      add: (body: NewMember, options?: CallOptions) =>
        call<Member>(send, 'POST', `${current}/members`, { ...options, body }),
      update: (accountId: string, body: { readonly role: Role }, options?: CallOptions) =>
        call<Member>(send, 'PATCH', path`/organisations/current/members/${accountId}`, { ...options, body }),
      remove: (accountId: string, options?: CallOptions) =>
        call<void>(send, 'DELETE', path`/organisations/current/members/${accountId}`, options),
    },
    apiKeys: {
      list: (query?: PageQuery, options?: CallOptions): Listing<ApiKeyRecord> =>
        listing(send, `${current}/api-keys`, query, options),
      create: (body: { readonly name: string; readonly environment: Environment }, options?: CallOptions) =>
        call<NewApiKey>(send, 'POST', `${current}/api-keys`, { ...options, body }),
      revoke: (keyId: string, options?: CallOptions) =>
        call<void>(send, 'DELETE', path`/organisations/current/api-keys/${keyId}`, options),
    },
  }
}
