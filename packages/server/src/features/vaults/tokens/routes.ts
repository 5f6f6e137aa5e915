import type { Operation } from '../../../platform/operation.ts'
import { PageQuery } from '../../../platform/wire.ts'
import { fail, notFound } from '../errors.ts'
import { type Deps, operation } from '../ports.ts'
import { VaultParams } from '../schema.ts'
import { ofVault } from '../semaphores.ts'
import { NewVaultToken, VaultToken, VaultTokenParams, VaultTokenRecord } from './schema.ts'
import { createVaultToken, isRecorded, pageOfTokens, revokeTokens } from './tokens.ts'

export const vaultTokenOperations: readonly Operation<Deps>[] = [
  operation({
    id: 'vaults.tokens.create',
    needs: { role: 'member', scope: 'vaults', gives: 'read' },
    method: 'POST',
    path: '/vaults/{id}/tokens',
    summary: 'Make a token that reads one vault, its files and its events, and nothing else.',
    description: 'With `kind: "ticket"` it opens one stream of events, as `?ticket=` in the address.',
    // With the record of its later revocation, which has no limit.
    settingCost: 0.1,
    leavesNothing: (body) => !isRecorded(body),
    params: VaultParams,
    input: NewVaultToken,
    output: VaultToken,
    status: 201,
    errors: notFound,
    secretResponse: true,
    semaphores: ofVault,
    run: (ctx, { params, body }) => createVaultToken(ctx, params.id, body),
  }),
  operation({
    id: 'vaults.tokens.list',
    needs: { role: 'viewer', scope: 'read' },
    method: 'GET',
    path: '/vaults/{id}/tokens',
    summary: "List a vault's valid tokens and tickets, newest first, without their text.",
    description: '`madeBy` is the API key or account that created it.',
    params: VaultParams,
    query: PageQuery,
    output: VaultTokenRecord,
    list: true,
    errors: notFound,
    run: (ctx, { params, query }) => pageOfTokens(ctx, params.id, query),
  }),
  operation({
    id: 'vaults.tokens.revokeAll',
    needs: { role: 'member', scope: 'vaults' },
    whileSuspended: true,
    method: 'DELETE',
    path: '/vaults/{id}/tokens',
    summary: 'Revoke all tokens and tickets of a vault. Their streams and links end too.',
    description: 'API keys still read the vault.',
    params: VaultParams,
    errors: notFound,
    semaphores: ofVault,
    run: (ctx, { params }) => revokeTokens(ctx, params.id),
  }),
  operation({
    id: 'vaults.tokens.revoke',
    needs: { role: 'member', scope: 'vaults' },
    whileSuspended: true,
    method: 'DELETE',
    path: '/vaults/{id}/tokens/{tokenId}',
    summary: 'Revoke a token or ticket of a vault. Its streams and links end too.',
    description: 'API keys and other tokens still read the vault.',
    params: VaultTokenParams,
    errors: { ...notFound, 'vault-token-not-found': fail.table['vault-token-not-found'] },
    semaphores: ofVault,
    run: (ctx, { params }) => revokeTokens(ctx, params.id, params.tokenId),
  }),
]
