import { type Operation, operation } from '../../../platform/operation.ts'
import { notFound } from '../errors.ts'
import { VaultParams } from '../schema.ts'
import { ofVault } from '../semaphores.ts'
import { NewVaultToken, VaultToken } from './schema.ts'
import { createVaultToken } from './tokens.ts'

export const vaultTokenOperations: readonly Operation[] = [
  operation({
    id: 'vaults.tokens.create',
    needs: { role: 'member', scope: 'vaults' },
    method: 'POST',
    path: '/vaults/{id}/tokens',
    summary: 'Make a token that reads one vault, its files and its events, and nothing else.',
    description: 'With `kind: "ticket"` it opens one stream of events, as `?ticket=` in the address.',
    params: VaultParams,
    input: NewVaultToken,
    output: VaultToken,
    status: 201,
    errors: notFound,
    secretAnswer: true,
    semaphores: ofVault,
    run: (ctx, { params, body }) => createVaultToken(ctx, params.id, body),
  }),
]
