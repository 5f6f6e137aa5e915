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

/** The query of the vaults and bytes that the plan leaves. */
export function vaultQuotaQuery(purser: Purser) {
  return queryOptions({
    queryKey: [...vaultsKey, 'quota'],
    queryFn: ({ signal }) => purser.vaults.quota({ signal }),
  })
}

/** The newest tokens of a vault that are valid, without the tickets of its streams. */
export function vaultTokensQuery(purser: Purser, vaultId: string) {
  return queryOptions({
    queryKey: [...vaultsKey, 'tokens', vaultId],
    queryFn: async ({ signal }) => {
      const { items } = await purser.vaults.tokens.list(vaultId, { limit: 100 }, { signal }).page()
      return items.filter(({ kind }) => kind === 'token')
    },
  })
}
