import type { Purser } from '@purser/sdk'
import { queryOptions } from '@tanstack/react-query'

export const vaultsKey = ['vaults'] as const

/** One vault with its documents and files. */
export function vaultQuery(purser: Purser, vaultId: string) {
  return queryOptions({
    queryKey: [...vaultsKey, 'one', vaultId],
    queryFn: ({ signal }) => purser.vaults.get(vaultId, { signal }),
  })
}

/** How many vaults and bytes the plan leaves. */
export function vaultQuotaQuery(purser: Purser) {
  return queryOptions({
    queryKey: [...vaultsKey, 'quota'],
    queryFn: ({ signal }) => purser.vaults.quota({ signal }),
  })
}
