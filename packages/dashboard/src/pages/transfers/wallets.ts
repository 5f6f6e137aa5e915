import type { MasterWallet } from '@purser/sdk'
import { type UseQueryResult, useQuery } from '@tanstack/react-query'
import { usePurser } from '../../api/context.ts'
import { environmentOf } from '../../api/scope.ts'
import { actualNetwork } from '../../ui/explorer.ts'
import { middleTruncate, networkName } from '../../ui/format.ts'
import { partsQuery } from '../wallets/queries.ts'

/** All managed wallets, retired ones too. */
function useAllManaged<T>(select: (wallets: readonly MasterWallet[]) => T): UseQueryResult<T> {
  const purser = usePurser()
  return useQuery({
    queryKey: ['wallets', 'managed'],
    queryFn: async ({ signal }): Promise<readonly MasterWallet[]> =>
      (await purser.wallets.master.list({ limit: 500 }, { signal }).page()).items,
    select,
  })
}

const areActive = (wallets: readonly MasterWallet[]) =>
  wallets.filter(({ provisionStatus }) => provisionStatus === 'active')
const byId = (wallets: readonly MasterWallet[]) => new Map(wallets.map((wallet) => [wallet.id as string, wallet]))

/** The managed wallets that money can leave. */
export function useManagedWallets(): UseQueryResult<readonly MasterWallet[]> {
  return useAllManaged(areActive)
}

/** The name of a managed wallet; undefined for one without a name and for a child address. */
export function useWalletName(walletId: string): string | undefined {
  return useAllManaged(byId).data?.get(walletId)?.name ?? undefined
}

/** The present balances of a wallet with their parts, by token. */
export function useWalletBalances(walletId: string | undefined) {
  return useQuery({ ...partsQuery(usePurser(), { id: walletId ?? '' }), enabled: walletId !== undefined })
}

export function walletLabel({ name, id, chain }: Pick<MasterWallet, 'name' | 'id' | 'chain'>): string {
  return `${name ?? middleTruncate(id)} · ${networkName(actualNetwork(chain, environmentOf(location.pathname) ?? 'test'))}`
}
