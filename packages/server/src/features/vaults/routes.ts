import { isDeepStrictEqual } from 'node:util'
import { custodyErrors } from '../../custody/errors.ts'
import { failPlatform } from '../../platform/errors.ts'
import type { Operation } from '../../platform/operation.ts'
import { planErrors } from '../plans/index.ts'
import { createVault } from './create.ts'
import { addDocument, documentAt, documentResource, getDocument } from './documents.ts'
import { fail, notFound, notWritable } from './errors.ts'
import { emitEvent } from './events.ts'
import { deleteVault } from './lifecycle.ts'
import { extendVault, persistVault } from './lifetime.ts'
import { type Ctx, type Deps, operation } from './ports.ts'
import { getVaultQuota } from './quota.ts'
import { getVault, pageOfVaults } from './read.ts'
import {
  DocumentParams,
  ExtendRequest,
  NewDocument,
  NewVault,
  NewVaultEvent,
  Proof,
  ProofQuery,
  SealRequest,
  Vault,
  VaultChange,
  VaultDocument,
  VaultEvent,
  type VaultId,
  VaultParams,
  VaultQuery,
  VaultQuota,
  VaultState,
} from './schema.ts'
import { getProof, sealVault } from './seal.ts'
import { ofVault, ofVaultDocuments, tenantSemaphores } from './semaphores.ts'
import { describeVault } from './store.ts'
import { vaultGuest } from './tokens/index.ts'
import { lockWritable, shownVault } from './vault.ts'

const fullStreamError = { 'events-per-vault-exceeded': fail.table['events-per-vault-exceeded'] }
const ttlError = { 'ttl-exceeds-plan': fail.table['ttl-exceeds-plan'] }

const ofVaults: readonly Operation<Deps>[] = [
  operation({
    id: 'vaults.create',
    needs: { role: 'member', scope: 'vaults' },
    agent: 'adds',
    method: 'POST',
    path: '/vaults',
    summary: 'Make a vault.',
    description:
      'A workspace for documents, files and events, which is deleted when its `ttl` ends. Counts towards the active vaults of the plan.',
    input: NewVault,
    output: Vault,
    status: 201,
    errors: {
      ...ttlError,
      'vault-quota-exceeded': planErrors['vault-quota-exceeded'],
      'payment-limit-reached': planErrors['payment-limit-reached'],
    },
    semaphores: tenantSemaphores,
    run: (ctx, { body }) => createVault(ctx, body),
  }),
  operation({
    id: 'vaults.list',
    needs: { role: 'viewer', scope: 'read' },
    agent: 'reads',
    method: 'GET',
    path: '/vaults',
    summary: 'List vaults, newest first.',
    description: 'Without their contents. Expired vaults are deleted and not listed.',
    query: VaultQuery,
    output: Vault,
    list: true,
    run: (ctx, { query }) => pageOfVaults(ctx, query),
  }),
  operation({
    id: 'vaults.quota',
    needs: { role: 'viewer', scope: 'read' },
    method: 'GET',
    path: '/vaults/quota',
    summary: 'Get the usage of vaults and the limits of the plan.',
    description: 'Active and persisted vaults, and the bytes of all documents and files.',
    output: VaultQuota,
    run: (ctx) => getVaultQuota(ctx),
  }),
  operation({
    id: 'vaults.get',
    needs: { role: 'viewer', scope: 'read' },
    agent: 'reads',
    method: 'GET',
    path: '/vaults/{id}',
    summary: 'Get a vault with its contents.',
    description: 'With an API key or a vault token. Beyond 256 KiB in all, documents are listed without `data`.',
    params: VaultParams,
    output: VaultState,
    errors: notFound,
    guests: vaultGuest,
    guestCredentials: ['vaultToken'],
    run: (ctx, { params }) => getVault(ctx, params.id),
  }),
  operation({
    id: 'vaults.update',
    needs: { role: 'member', scope: 'vaults' },
    method: 'PATCH',
    path: '/vaults/{id}',
    summary: 'Change the description and metadata of a vault.',
    description: 'Omitted fields stay as they are. A sealed vault is not changed.',
    settingCost: 0.1,
    params: VaultParams,
    input: VaultChange,
    output: Vault,
    errors: notWritable,
    semaphores: ofVault,
    run: (ctx, { params, body }) => changeVault(ctx, params.id, body),
  }),
  operation({
    id: 'vaults.delete',
    needs: { role: 'member', scope: 'vaults' },
    method: 'DELETE',
    path: '/vaults/{id}',
    summary: 'Delete a vault with its contents.',
    description: 'At once and permanently, with its documents, files, tokens and streams.',
    settingCost: 0.1,
    params: VaultParams,
    errors: notFound,
    semaphores: ofVault,
    run: (ctx, { params }) => deleteVault(ctx, params.id),
  }),
]

const ofContents: readonly Operation<Deps>[] = [
  operation({
    id: 'vaults.documents.add',
    needs: { role: 'member', scope: 'vaults' },
    agent: 'adds',
    // A megabyte of data, and what JSON encoding may add.
    bodyBytesMax: 4 * 2 ** 20,
    method: 'POST',
    path: '/vaults/{id}/documents',
    summary: 'Put a JSON document into a vault.',
    description: 'Any JSON object of at most 1 MiB. A sealed vault takes none.',
    params: VaultParams,
    input: NewDocument,
    output: VaultDocument,
    status: 201,
    resourceOf: documentResource,
    resume: documentAt,
    errors: {
      ...notWritable,
      ...fullStreamError,
      'payload-too-large': failPlatform.table['payload-too-large'],
      'documents-per-vault-exceeded': planErrors['documents-per-vault-exceeded'],
      'storage-quota-exceeded': planErrors['storage-quota-exceeded'],
    },
    idempotency: 'batch',
    semaphores: ofVaultDocuments,
    run: (ctx, { params, body }) => addDocument(ctx, params.id, body),
  }),
  operation({
    id: 'vaults.documents.get',
    needs: { role: 'viewer', scope: 'read' },
    agent: 'reads',
    method: 'GET',
    path: '/vaults/{id}/documents/{docId}',
    summary: 'Get a document with its data.',
    description: 'With an API key or a vault token.',
    params: DocumentParams,
    output: VaultDocument,
    errors: { ...notFound, 'document-not-found': fail.table['document-not-found'] },
    guests: vaultGuest,
    guestCredentials: ['vaultToken'],
    run: (ctx, { params }) => getDocument(ctx, params.id, params.docId),
  }),
  operation({
    id: 'vaults.emit',
    needs: { role: 'member', scope: 'vaults' },
    method: 'POST',
    path: '/vaults/{id}/emit',
    summary: 'Emit an event of your own to all who watch the vault.',
    description: 'Open streams receive it at once; later ones can replay it. A sealed vault takes none.',
    params: VaultParams,
    input: NewVaultEvent,
    output: VaultEvent,
    status: 201,
    errors: {
      ...notWritable,
      ...fullStreamError,
      'storage-quota-exceeded': planErrors['storage-quota-exceeded'],
    },
    semaphores: ofVault,
    run: (ctx, { params, body }) => emitEvent(ctx, params.id, body),
  }),
]

const ofLifecycle: readonly Operation<Deps>[] = [
  operation({
    id: 'vaults.extend',
    needs: { role: 'member', scope: 'vaults' },
    method: 'POST',
    path: '/vaults/{id}/extend',
    summary: 'Give a vault a new end, counted from now.',
    description: 'Also for a sealed vault, within the limit of the plan.',
    // Each writes events, which no limit of the vault counts once it is sealed.
    settingCost: 0.1,
    params: VaultParams,
    input: ExtendRequest,
    output: Vault,
    errors: { ...notFound, ...ttlError, ...fullStreamError, 'vault-persisted': fail.table['vault-persisted'] },
    semaphores: ofVault,
    run: (ctx, { params, body }) => extendVault(ctx, params.id, body),
  }),
  operation({
    id: 'vaults.persist',
    needs: { role: 'member', scope: 'vaults' },
    method: 'POST',
    path: '/vaults/{id}/persist',
    summary: 'Keep a vault until it is deleted.',
    description:
      'It no longer expires. It counts towards the persisted vaults of the plan and no longer towards the active ones.',
    params: VaultParams,
    output: Vault,
    errors: {
      ...notFound,
      'persisted-vault-quota-exceeded': planErrors['persisted-vault-quota-exceeded'],
    },
    semaphores: ofVault,
    run: (ctx, { params }) => persistVault(ctx, params.id),
  }),
  operation({
    id: 'vaults.seal',
    needs: { role: 'member', scope: 'vaults' },
    agent: 'ends',
    method: 'POST',
    path: '/vaults/{id}/seal',
    summary: 'Make a vault permanently read-only and sign its contents.',
    description:
      'Every later write is 409 `vault-sealed`, and streams end with `vault.sealed`. Get the signed proof with `vaults.proof`.',
    params: VaultParams,
    input: SealRequest,
    output: Vault,
    errors: { ...notWritable, ...custodyErrors },
    semaphores: ofVault,
    run: (ctx, { params, body }) => sealVault(ctx, params.id, body),
  }),
  operation({
    id: 'vaults.proof',
    needs: { role: 'viewer', scope: 'read' },
    agent: 'reads',
    method: 'GET',
    path: '/vaults/{id}/proof',
    summary: 'Get the proof of a sealed vault, or of one item in it.',
    description: 'Anybody can check it offline with the public keys of `/.well-known/jwks.json`.',
    params: VaultParams,
    query: ProofQuery,
    output: Proof,
    errors: {
      ...notFound,
      'item-not-found': fail.table['item-not-found'],
      'vault-not-sealed': fail.table['vault-not-sealed'],
      ...custodyErrors,
    },
    run: (ctx, { params, query }) => getProof(ctx, params.id, query.item),
  }),
]

export const vaultOperations: readonly Operation<Deps>[] = [...ofVaults, ...ofContents, ...ofLifecycle]

/**
 * Changes the description and the metadata of a vault that is not sealed. The seal does not cover them, and no event reports the
 * change.
 */
function changeVault(ctx: Pick<Ctx, 'clock' | 'db' | 'tenant'>, vaultId: VaultId, change: VaultChange): Promise<Vault> {
  return ctx.db.tx(async (tx) => {
    const vault = await lockWritable(tx, ctx, vaultId)
    const { description = vault.description, metadata = vault.metadata } = change
    const isSame = description === vault.description && isDeepStrictEqual(metadata, vault.metadata)
    if (!isSame) await describeVault(tx, ctx.tenant, { id: vaultId, description, metadata })
    return shownVault(ctx.tenant, { ...vault, description, metadata })
  })
}
