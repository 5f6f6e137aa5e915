import type { VaultStatus } from '@purser/sdk'
import { isSearchText } from '../../ui/search.ts'

const statuses: readonly VaultStatus[] = ['active', 'sealed', 'persisted']

export interface VaultsSearch {
  readonly status?: VaultStatus
}

export interface VaultSearch {
  /** The document or file that is open beside the list of items. */
  readonly item?: string
}

/** Reads the filter of the list of vaults from an address. */
export function readVaultsSearch({ status }: Readonly<Record<string, unknown>>): VaultsSearch {
  const found = statuses.find((one) => one === status)
  return found === undefined ? {} : { status: found }
}

/** Reads the item that an address previews. */
export function readVaultSearch({ item }: Readonly<Record<string, unknown>>): VaultSearch {
  return isSearchText(item) ? { item } : {}
}
