import type { Balance, ByoWallet, ChildAddress, MasterWallet, Purser } from '@purser/sdk'
import { queryOptions } from '@tanstack/react-query'

export type AnyWallet = MasterWallet | ByoWallet

/** A wallet or a child address, which has the wallet that it was derived from. */
export interface Holder {
  readonly id: string
  readonly masterWalletId?: string
}

export const walletsKey = ['wallets'] as const

/** Whether the service keeps the key of the wallet, so that money can leave it here. */
export function isManaged(wallet: AnyWallet): wallet is MasterWallet {
  return 'provisionStatus' in wallet
}

function isManagedId(walletId: string): boolean {
  return walletId.startsWith('mwt_')
}

export function isChildId(walletId: string): boolean {
  return walletId.startsWith('cad_')
}

/** Whether the service keeps the key of the wallet or child address. */
export function isKeptHere({ id }: Holder): boolean {
  return isManagedId(id) || isChildId(id)
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

/** Sorts balances: the dollar token first, then other tokens, then the native coin. */
export function inOrder(balances: readonly Balance[]): readonly Balance[] {
  const rank = ({ tokenSymbol }: Balance) => (tokenSymbol === 'USDC' ? 0 : tokenSymbol === 'ETH' ? 2 : 1)
  return balances.toSorted((one, other) => rank(one) - rank(other))
}

/** A child address with its wallet; null if the organisation has no such child address in this environment. */
export function childQuery(purser: Purser, childAddressId: string) {
  return queryOptions({
    queryKey: [...walletsKey, 'child', childAddressId],
    queryFn: async ({ signal }): Promise<{ readonly child: ChildAddress; readonly wallet: MasterWallet } | null> => {
      const [wallet] = (await purser.wallets.master.list({ childAddressId, limit: 1 }, { signal }).page()).items
      if (wallet === undefined) return null
      return { wallet, child: await purser.wallets.children.get(wallet.id, childAddressId, { signal }) }
    },
  })
}

function readBalances(
  purser: Purser,
  { id, masterWalletId }: Holder,
  { signal, spendable }: { readonly signal: AbortSignal; readonly spendable: boolean },
): Promise<readonly Balance[]> {
  const query = spendable ? { spendable } : {}
  if (masterWalletId !== undefined) return purser.wallets.children.balances(masterWalletId, id, query, { signal })
  return isManagedId(id)
    ? purser.wallets.master.balances(id, query, { signal })
    : purser.wallets.byo.balances(id, { signal })
}

/** The present balances of the wallet or child address, read from its chain. */
export function balancesQuery(purser: Purser, holder: Holder) {
  return queryOptions({
    queryKey: [...walletsKey, 'balances', holder.id],
    queryFn: ({ signal }) => readBalances(purser, holder, { signal, spendable: false }),
    // Cached, because each balance costs an RPC request and a list is scrolled back and forth.
    staleTime: 60_000,
  })
}

/** The balances of a managed wallet or child address with their parts: what can be sent, and what is reserved or on hold. */
export function partsQuery(purser: Purser, holder: Holder) {
  return queryOptions({
    queryKey: [...walletsKey, 'parts', holder.id],
    queryFn: ({ signal }) => readBalances(purser, holder, { signal, spendable: true }),
    staleTime: 60_000,
  })
}

/** The end of a hold has no event. */
const holdsEveryMs = 15_000

/** The money that screening keeps from leaving, of all managed wallets and child addresses. */
export function holdsQuery(purser: Purser) {
  return queryOptions({
    queryKey: [...walletsKey, 'holds'],
    queryFn: ({ signal }) => purser.wallets.holds.summary({ signal }),
    refetchInterval: ({ state }) => ((state.data?.wallets ?? 0) > 0 ? holdsEveryMs : false),
  })
}

export function policyQuery(purser: Purser, walletId: string) {
  return queryOptions({
    queryKey: [...walletsKey, 'policy', walletId],
    queryFn: ({ signal }) => purser.wallets.master.policy.get(walletId, { signal }),
  })
}
