import { useQuery } from '@tanstack/react-query'
import { usePurser } from '../../api/context.ts'
import { createdColumn } from '../../ui/created-column.tsx'
import { Network } from '../../ui/network.tsx'
import { RowLink } from '../../ui/row-link.tsx'
import type { Column } from '../../ui/table.tsx'
import { Amount, OnChain } from '../../ui/values.tsx'
import { type AnyWallet, balancesQuery, type Holder, inOrder } from './queries.ts'
import { WalletBadge, walletName } from './wallet-state.tsx'

export const walletColumns: readonly Column<AnyWallet>[] = [
  {
    id: 'name',
    head: 'Wallet',
    cell: (wallet) => (
      <RowLink to={`/wallets/${wallet.id}`}>
        <span className="truncate font-medium">{walletName(wallet)}</span>
      </RowLink>
    ),
  },
  { id: 'state', head: 'State', width: 'w-32', cell: (wallet) => <WalletBadge wallet={wallet} /> },
  {
    id: 'balance',
    head: 'Balance',
    align: 'right',
    width: 'w-42',
    cell: (wallet) => <HolderBalance holder={wallet} />,
  },
  { id: 'network', head: 'Network', width: 'w-35', from: 'lg', cell: ({ chain }) => <Network chain={chain} /> },
  {
    id: 'address',
    head: 'Address',
    width: 'w-42',
    from: 'lg',
    cell: ({ address, chain }) => <OnChain value={address} network={chain} kind="address" />,
  },
  { ...createdColumn(), from: 'xl' },
]

/** The first token that a wallet or child address has, and how many others. Reads the chain when it comes into view. */
export function HolderBalance({ holder }: { holder: Holder }) {
  const { data, error } = useQuery(balancesQuery(usePurser(), holder))
  if (error !== null) return <span className="text-ink-3">not readable now</span>
  if (data === undefined) return <span className="skeleton inline-block h-3.5 w-20 align-middle" />
  const ordered = inOrder(data)
  const has = ordered.filter(({ rawBalance }) => rawBalance !== '0')
  const shown = has[0] ?? ordered[0]
  if (shown === undefined) return <span className="text-ink-3">nothing</span>
  return (
    <span className="inline-flex items-baseline gap-2">
      <Amount value={shown.formattedBalance} token={shown.tokenSymbol} />
      {has.length > 1 && <span className="text-xs text-ink-3">+{has.length - 1} more</span>}
    </span>
  )
}

/** A wallet in two lines, for narrow screens: its name and its balance. */
export function CompactWallet({ wallet }: { wallet: AnyWallet }) {
  return (
    <>
      <span className="flex items-center justify-between gap-3">
        <RowLink to={`/wallets/${wallet.id}`}>
          <span className="truncate font-medium">{walletName(wallet)}</span>
        </RowLink>
        <WalletBadge wallet={wallet} />
      </span>
      <span className="flex items-center justify-between gap-3 text-sm text-ink-2">
        <Network chain={wallet.chain} />
        <HolderBalance holder={wallet} />
      </span>
    </>
  )
}
