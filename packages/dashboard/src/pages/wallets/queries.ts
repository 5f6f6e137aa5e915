import type { Balance, ByoWallet, MasterWallet, Purser } from '@purser/sdk'
import { queryOptions } from '@tanstack/react-query'

export type AnyWallet = MasterWallet | ByoWallet

export const walletsKey = ['wallets'] as const

/** Whether the service keeps the key of the wallet, so that money can leave it here. */
export function isManaged(wallet: AnyWallet): wallet is MasterWallet {
  return 'provisionStatus' in wallet
}

function isManagedId(walletId: string): boolean {
  return walletId.startsWith('mwt_')
}

export function walletQuery(purser: Purser, walletId: string) {
  return queryOptions({
    queryKey: [...walletsKey, 'one', walletId],
    queryFn: ({ signal }): Promise<AnyWallet> =>
      isManagedId(walletId)
        ? purser.wallets.master.get(walletId, { signal })
        : purser.wallets.byo.get(walletId, { signal }),
  })
}

/** Balances as people look for them: the dollar token first, then other tokens, then the coin that pays for gas. */
export function inOrder(balances: readonly Balance[]): readonly Balance[] {
  const rank = ({ tokenSymbol }: Balance) => (tokenSymbol === 'USDC' ? 0 : tokenSymbol === 'ETH' ? 2 : 1)
  return balances.toSorted((one, other) => rank(one) - rank(other))
}

/** The present balances of the wallet, read from its chain. */
export function balancesQuery(purser: Purser, walletId: string) {
  return queryOptions({
    queryKey: [...walletsKey, 'balances', walletId],
    queryFn: ({ signal }): Promise<readonly Balance[]> =>
      isManagedId(walletId)
        ? purser.wallets.master.balances(walletId, {}, { signal })
        : purser.wallets.byo.balances(walletId, { signal }),
    // A balance costs a question to a node: a list that one scrolls back and forth does not repeat it.
    staleTime: 60_000,
  })
}

/** The balances of a managed wallet with their parts: what can be sent, and what is reserved or on hold. */
export function partsQuery(purser: Purser, walletId: string) {
  return queryOptions({
    queryKey: [...walletsKey, 'parts', walletId],
    queryFn: ({ signal }): Promise<readonly Balance[]> =>
      purser.wallets.master.balances(walletId, { spendable: true }, { signal }),
    staleTime: 60_000,
  })
}

export function policyQuery(purser: Purser, walletId: string) {
  return queryOptions({
    queryKey: [...walletsKey, 'policy', walletId],
    queryFn: ({ signal }) => purser.wallets.master.policy.get(walletId, { signal }),
  })
}
