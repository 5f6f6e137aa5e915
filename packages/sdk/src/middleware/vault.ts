import type { Purser } from '../client.ts'
import type { FileSource } from '../multipart.ts'
import type { Vault, VaultDocument, VaultEvent, VaultFile, VaultState } from '../vault-records.ts'

/**
 * The vault that comes with a payment, for the handler to use. It is created on first use, one per payment; calls of
 * one session share it. Refusals by Purser are thrown. A handler that does not catch one has failed and is not paid.
 */
export interface PaidVault {
  /** Returns the id, which the payer can use to read the vault. Creates the vault if needed. */
  readonly id: () => Promise<string>
  readonly addDocument: (name: string, data: Readonly<Record<string, unknown>>) => Promise<VaultDocument>
  /** A stream is sent in chunks and never buffered as a whole. */
  readonly addFile: (name: string, file: FileSource, mimeType?: string) => Promise<VaultFile>
  /** Emits an event to everybody who watches the vault. */
  readonly emit: (event: string, payload?: Readonly<Record<string, unknown>>) => Promise<VaultEvent>
  /** Closes the vault to writes permanently and signs its content. */
  readonly seal: (summary?: string) => Promise<Vault>
  /** Keeps the vault until it is deleted. */
  readonly persist: () => Promise<Vault>
  /** The content of the vault and, once it is sealed, the manifest. */
  readonly getManifest: () => Promise<VaultState>
}

/** A vault whose id is resolved on first use. */
export function openVault({ vaults }: Purser, idOf: () => Promise<string>): PaidVault {
  return {
    id: idOf,
    addDocument: async (name, data) => vaults.documents.add(await idOf(), { name, data }),
    addFile: async (name, file, mimeType) => vaults.files.add(await idOf(), file, { name, mimeType }),
    emit: async (event, payload) => vaults.emit(await idOf(), { event, ...(payload !== undefined && { payload }) }),
    seal: async (summary) => vaults.seal(await idOf(), summary === undefined ? {} : { summary }),
    persist: async () => vaults.persist(await idOf()),
    getManifest: async () => vaults.get(await idOf()),
  }
}
