import { call, list } from './call.ts'
import type { operations } from './generated/openapi.ts'
import type { Body, Item, Query, ResponseBody } from './operations.ts'
import type { Listing, PageQuery } from './paging.ts'
import type { CallOptions, Send } from './transport.ts'

export type ApiKeyRecord = Item<operations['organisations.apiKeys.list']>
export type Environment = ApiKeyRecord['environment']
export type ApiKeyRequest = Body<operations['organisations.apiKeys.create']>
/** A new key with its secret, which no later response shows. */
export type NewApiKey = ResponseBody<operations['organisations.apiKeys.create']>
/** The result of revoking a key that has created other keys, if some of them were still valid. */
export type RevokedKey = NonNullable<ResponseBody<operations['organisations.apiKeys.revoke']>>
/** With `cascade: 'true'`, the keys that it has created are revoked too. */
export type RevokeQuery = Query<operations['organisations.apiKeys.revoke']>
export type ApiKeyRequestIn = Body<operations['organisations.apiKeys.createIn']>
/** Like `NewApiKey`, from the operation that names the organisation in its path. */
export type NewApiKeyIn = ResponseBody<operations['organisations.apiKeys.createIn']>

/** The operations on API keys; those that end in `In` name the organisation in the path, which must be the key's own. */
export function apiKeysOf(send: Send) {
  return {
    /** Creates an API key of the calling key's organisation. Only this response contains its secret. */
    create: (body: ApiKeyRequest, options?: CallOptions): Promise<NewApiKey> =>
      call(send, 'POST', '/organisations/current/api-keys', { ...options, body }),
    /** API keys without their secrets, newest first. */
    list: (query?: PageQuery, options?: CallOptions): Listing<ApiKeyRecord> =>
      list(send, '/organisations/current/api-keys', { ...options, query }),
    /** Revokes an API key immediately and permanently. */
    revoke: (keyId: string, query?: RevokeQuery, options?: CallOptions): Promise<RevokedKey | undefined> =>
      call(send, 'DELETE', '/organisations/current/api-keys/{keyId}', { ...options, params: { keyId }, query }),
    /** As `create`, with the organisation's id in the path. */
    createIn: (orgId: string, body: ApiKeyRequestIn, options?: CallOptions): Promise<NewApiKeyIn> =>
      call(send, 'POST', '/organisations/{orgId}/api-keys', { ...options, params: { orgId }, body }),
    /** As `list`, with the organisation's id in the path. */
    listIn: (orgId: string, query?: PageQuery, options?: CallOptions): Listing<ApiKeyRecord> =>
      list(send, '/organisations/{orgId}/api-keys', { ...options, params: { orgId }, query }),
    revokeIn: (
      orgId: string,
      keyId: string,
      query?: RevokeQuery,
      options?: CallOptions,
    ): Promise<RevokedKey | undefined> =>
      call(send, 'DELETE', '/organisations/{orgId}/api-keys/{keyId}', { ...options, params: { orgId, keyId }, query }),
  }
}
