import type { MasterWallet } from '@purser/sdk'
import { type UseQueryResult, useQuery } from '@tanstack/react-query'
import { usePurser } from '../../api/context.ts'
import { environmentOf } from '../../api/scope.ts'
import { actualNetwork } from '../../ui/explorer.ts'
import { middleTruncate, networkName } from '../../ui/format.ts'
import { partsQuery } from '../wallets/queries.ts'

/** The managed wallets that money can leave. */
export function useManagedWallets(): UseQueryResult<readonly MasterWallet[]> {
  const purser = usePurser()
  return useQuery({
    queryKey: ['wallets', 'managed'],
    queryFn: async ({ signal }) => {
      const { items } = await purser.wallets.master.list({ limit: 100 }, { signal }).page()
      return items.filter(({ provisionStatus }) => provisionStatus === 'active')
    },
  })
}

/** The present balances of a wallet with their parts, by token. */
export function useWalletBalances(walletId: string | undefined) {
  return useQuery({ ...partsQuery(usePurser(), walletId ?? ''), enabled: walletId !== undefined })
}

export function walletLabel({ name, id, chain }: Pick<MasterWallet, 'name' | 'id' | 'chain'>): string {
  return `${name ?? middleTruncate(id)} · ${networkName(actualNetwork(chain, environmentOf(location.pathname) ?? 'test'))}`
}
