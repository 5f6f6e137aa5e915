import { z } from 'zod'
import { fileStorageErrors } from '../../../files/index.ts'
import { failPlatform } from '../../../platform/errors.ts'
import { id } from '../../../platform/ids.ts'
import type { Operation } from '../../../platform/operation.ts'
import { planErrors } from '../../plans/index.ts'
import { fail as failVault, notFound, notWritable } from '../errors.ts'
import { type Deps, operation } from '../ports.ts'
import { VaultFile, VaultParams } from '../schema.ts'
import { ofVault } from '../semaphores.ts'
import { vaultGuest } from '../tokens/guest.ts'
import { downloadFile } from './download.ts'
import { fail } from './errors.ts'
import { deleteFile, linkGuest } from './link.ts'
import { presentFile, readRepeat, uploadFile } from './upload.ts'

const FileParams = z.strictObject({ id: id('vlt'), fileId: id('fil') })
const LinkQuery = z.strictObject({
  expires: z.string().max(12).optional().meta({ description: 'Of a signed link: when it ends, in Unix seconds.' }),
  by: z.string().max(80).optional().meta({
    description: 'Of a signed link: the credential for which it was issued. The link ends with that credential.',
  }),
  signature: z.string().max(64).optional().meta({ description: 'Of a signed link, which needs no header.' }),
})
const fileNotFound = { 'file-not-found': fail.table['file-not-found'] }

const uploadErrors = {
  ...notWritable,
  ...fileStorageErrors,
  'malformed-multipart': fail.table['malformed-multipart'],
  'bad-request': failPlatform.table['bad-request'],
  'request-timeout': failPlatform.table['request-timeout'],
  'unsupported-media-type': failPlatform.table['unsupported-media-type'],
  'file-too-large': fail.table['file-too-large'],
  'digest-mismatch': fail.table['digest-mismatch'],
  'files-per-vault-exceeded': planErrors['files-per-vault-exceeded'],
  'events-per-vault-exceeded': failVault.table['events-per-vault-exceeded'],
  'storage-quota-exceeded': planErrors['storage-quota-exceeded'],
}

export const vaultFileOperations: readonly Operation<Deps>[] = [
  operation({
    id: 'vaults.files.add',
    needs: { role: 'member', scope: 'vaults' },
    method: 'POST',
    path: '/vaults/{id}/files',
    summary: 'Put a file into a vault.',
    description:
      'The form has one field, `file`, with its name. A `Content-Digest` of the request or of the part (sha-256, sha-512) is verified.',
    params: VaultParams,
    streamsInput: {
      mediaType: 'multipart/form-data',
      schema: {
        type: 'object',
        required: ['file'],
        properties: { file: { type: 'string', format: 'binary', description: 'The file, with its name.' } },
      },
      example: { file: 'city,sky,celsius\nZurich,clear,21\n' },
    },
    output: VaultFile,
    status: 201,
    errors: uploadErrors,
    // Its transactions, and a request to the storage, which an operator may pay for.
    cost: () => 5,
    idempotency: 'intent',
    readContent: readRepeat,
    resume: (ctx, fileId) => presentFile(ctx, fileId),
    run: (ctx, { params, ...request }) => uploadFile(ctx, params.id, request),
  }),
  operation({
    id: 'vaults.files.get',
    needs: { role: 'viewer', scope: 'read' },
    method: 'GET',
    path: '/vaults/{id}/files/{fileId}',
    summary: 'Download a file, or a part of it.',
    description: 'Takes `Range` (206), `If-Range` and `If-None-Match` (304). A signed link needs no header.',
    params: FileParams,
    query: LinkQuery,
    streamsOutput: '*/*',
    streamExample: 'city,sky,celsius\nZurich,clear,21\n',
    otherOutputs: { 206: z.unknown(), 304: z.undefined() },
    responseHeaders: {
      ETag: 'The SHA-256 of the whole file, for If-None-Match and If-Range.',
      'Accept-Ranges': 'bytes.',
      'Content-Disposition': 'attachment, with the name of the file.',
      'Content-Security-Policy': 'That a browser runs nothing of it.',
      'Content-Digest': 'The SHA-256 of what is sent (RFC 9530), where that is the whole file.',
      'Repr-Digest': 'The SHA-256 of the whole file (RFC 9530).',
    },
    errors: {
      ...notFound,
      ...fileNotFound,
      ...fileStorageErrors,
      'range-not-satisfiable': fail.table['range-not-satisfiable'],
    },
    guests: async (deps, request) => (await linkGuest(deps, request)) ?? vaultGuest(deps, request),
    guestCredentials: ['vaultToken', 'signedLink'],
    run: (ctx, { params, headers }) => downloadFile(ctx, params, headers),
  }),
  operation({
    id: 'vaults.files.delete',
    needs: { role: 'member', scope: 'vaults' },
    method: 'DELETE',
    path: '/vaults/{id}/files/{fileId}',
    summary: 'Delete a file.',
    description: 'Its bytes no longer count towards the storage. A sealed vault keeps its files.',
    params: FileParams,
    errors: { ...notWritable, ...fileNotFound },
    semaphores: ofVault,
    run: (ctx, { params }) => deleteFile(ctx, params.id, params.fileId),
  }),
]
