import type { Purser } from '../client.ts'
import type { FileSource } from '../multipart.ts'
import type { Vault, VaultDocument, VaultEvent, VaultFile, VaultState } from '../vault-records.ts'

/**
 * The vault that a payment bought, for the handler to work in. It is made when it is first used, one for each payment; calls of
 * one session share theirs. What Purser refuses is thrown: a handler that does not catch it has failed, and is not paid.
 */
export interface PaidVault {
  /** Its id, for the payer to look at it; makes the vault where it is not there yet. */
  readonly id: () => Promise<string>
  readonly addDocument: (name: string, data: Readonly<Record<string, unknown>>) => Promise<VaultDocument>
  /** A stream goes out as it comes and is never whole in memory. */
  readonly addFile: (name: string, file: FileSource, mimeType?: string) => Promise<VaultFile>
  /** Tells everybody who watches the vault. */
  readonly emit: (event: string, payload?: Readonly<Record<string, unknown>>) => Promise<VaultEvent>
  /** Closes it to writes for ever and signs what it holds. */
  readonly seal: (summary?: string) => Promise<Vault>
  /** Keeps it until it is deleted. */
  readonly persist: () => Promise<Vault>
  /** Everything that it holds and, once it is sealed, the manifest. */
  readonly getManifest: () => Promise<VaultState>
}

/** A vault whose id is not asked for before it is needed. */
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
