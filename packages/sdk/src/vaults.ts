import { callUntyped, fill, listUntyped } from './call.ts'
import { type FileNaming, type FileSource, fileForm } from './multipart.ts'
import type { Listing, PageQuery } from './paging.ts'
import type { CallOptions, Open, Send } from './transport.ts'
import { type EventsQuery, vaultEvents } from './vault-events.ts'
import type {
  NewDocument,
  NewVault,
  NewVaultEvent,
  NewVaultToken,
  Vault,
  VaultChange,
  VaultDocument,
  VaultEvent,
  VaultFile,
  VaultQuota,
  VaultState,
  VaultStatus,
  VaultToken,
  VaultTokenRecord,
} from './vault-records.ts'

/** The operations on vaults and their content. */
export function vaultsOf(send: Send, open: Open) {
  return {
    ...lifeOf(send),
    documents: documentsOf(send),
    files: filesOf(send, open),
    tokens: {
      /** Creates a read token, or a ticket for an event stream, for this vault only. Only this response contains it. */
      create: (id: string, body: NewVaultToken = {}, options?: CallOptions): Promise<VaultToken> =>
        callUntyped(send, 'POST', '/vaults/{id}/tokens', { ...options, params: { id }, body }),
      /** The valid tokens and tickets, without their text. */
      list: (id: string, query?: PageQuery, options?: CallOptions): Listing<VaultTokenRecord> =>
        listUntyped(send, '/vaults/{id}/tokens', { ...options, params: { id }, query }),
      /** Revokes a token or ticket; its open streams and links end immediately. */
      revoke: (id: string, tokenId: string, options?: CallOptions): Promise<void> =>
        callUntyped(send, 'DELETE', '/vaults/{id}/tokens/{tokenId}', { ...options, params: { id, tokenId } }),
      /** Revokes all tokens and tickets of a vault; their open streams and links end immediately. */
      revokeAll: (id: string, options?: CallOptions): Promise<void> =>
        callUntyped(send, 'DELETE', '/vaults/{id}/tokens', { ...options, params: { id } }),
    },
    /** Emits a custom event to all readers of the vault's stream. */
    emit: (id: string, body: NewVaultEvent, options?: CallOptions): Promise<VaultEvent> =>
      callUntyped(send, 'POST', '/vaults/{id}/emit', { ...options, params: { id }, body }),
    /**
     * Yields the events of the vault from now on, or from the position in the query, until it is sealed or no longer
     * exists. Use with `for await`.
     */
    events: (id: string, query?: EventsQuery, options?: CallOptions): AsyncIterable<VaultEvent> =>
      vaultEvents(open, id, query, options),
  }
}

function lifeOf(send: Send) {
  return {
    /** Creates a vault. */
    create: (body: NewVault = {}, options?: CallOptions): Promise<Vault> =>
      callUntyped(send, 'POST', '/vaults', { ...options, body }),
    /** Vaults, newest first. */
    list: (query?: PageQuery & { readonly status?: VaultStatus }, options?: CallOptions): Listing<Vault> =>
      listUntyped(send, '/vaults', { ...options, query }),
    /** The usage of vaults and the limits of the plan; -1 means no limit. */
    quota: (options?: CallOptions): Promise<VaultQuota> => callUntyped(send, 'GET', '/vaults/quota', { ...options }),
    /** Returns a vault with its documents, files and manifest. */
    get: (id: string, options?: CallOptions): Promise<VaultState> =>
      callUntyped(send, 'GET', '/vaults/{id}', { ...options, params: { id } }),
    /** Changes the description or metadata of a vault. */
    update: (id: string, body: VaultChange, options?: CallOptions): Promise<Vault> =>
      callUntyped(send, 'PATCH', '/vaults/{id}', { ...options, params: { id }, body }),
    /** Deletes a vault with its content. */
    delete: (id: string, options?: CallOptions): Promise<void> =>
      callUntyped(send, 'DELETE', '/vaults/{id}', { ...options, params: { id } }),
    /** Sets the expiry to `ttl` from now. */
    extend: (id: string, body: { readonly ttl: string }, options?: CallOptions): Promise<Vault> =>
      callUntyped(send, 'POST', '/vaults/{id}/extend', { ...options, params: { id }, body }),
    /** Keeps the vault until it is deleted. */
    persist: (id: string, options?: CallOptions): Promise<Vault> =>
      callUntyped(send, 'POST', '/vaults/{id}/persist', { ...options, params: { id } }),
    /** Closes the vault to writes permanently and signs its content. */
    seal: (id: string, body: { readonly summary?: string | undefined } = {}, options?: CallOptions): Promise<Vault> =>
      callUntyped(send, 'POST', '/vaults/{id}/seal', { ...options, params: { id }, body }),
    /** Returns the proof of the seal, or of one item in it. `@purser/sdk/seal` checks it offline. */
    proof: (id: string, query?: { readonly item?: string | undefined }, options?: CallOptions): Promise<unknown> =>
      callUntyped(send, 'GET', '/vaults/{id}/proof', { ...options, params: { id }, query }),
  }
}

function documentsOf(send: Send) {
  return {
    /** Adds a JSON document to a vault. */
    add: (id: string, body: NewDocument, options?: CallOptions): Promise<VaultDocument> =>
      callUntyped(send, 'POST', '/vaults/{id}/documents', { ...options, params: { id }, body }),
    /** Returns a document with its data. */
    get: (id: string, docId: string, options?: CallOptions): Promise<VaultDocument> =>
      callUntyped(send, 'GET', '/vaults/{id}/documents/{docId}', { ...options, params: { id, docId } }),
  }
}

function filesOf(send: Send, open: Open) {
  return {
    /**
     * Uploads a file. A stream is sent in chunks, and once only; anything else may be sent again if the response is
     * lost. The timeout (default 10 minutes) covers the whole upload.
     */
    add: (id: string, file: FileSource, options: FileNaming & CallOptions = {}): Promise<VaultFile> => {
      const { name, mimeType, timeoutMs = uploadMsMax, ...others } = options
      const upload = fileForm(file, { name, mimeType })
      return callUntyped(send, 'POST', '/vaults/{id}/files', { ...others, timeoutMs, params: { id }, upload })
    },
    /** Returns the file as a response with a streamed body. `headers: { range: 'bytes=0-99' }` requests a part. */
    get: (id: string, fileId: string, options: CallOptions = {}): Promise<Response> =>
      open(fill('/vaults/{id}/files/{fileId}', { id, fileId }), {
        ...options,
        headers: { accept: '*/*', ...options.headers },
      }),
    /** Deletes a file of a vault that is not sealed. */
    delete: (id: string, fileId: string, options?: CallOptions): Promise<void> =>
      callUntyped(send, 'DELETE', '/vaults/{id}/files/{fileId}', { ...options, params: { id, fileId } }),
  }
}

const uploadMsMax = 600_000
