import { useQueryClient } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { Wallet } from 'lucide-react'
import { useCallback } from 'react'
import { usePurser } from '../../api/context.ts'
import { useListing } from '../../api/listing.ts'
import { useRefreshOn } from '../../live/use-live.ts'
import { count } from '../../ui/format.ts'
import { ListCard } from '../../ui/list-card.tsx'
import { Empty, Page } from '../../ui/page.tsx'
import { Tabs } from '../../ui/tabs.tsx'
import { CompactWallet, walletColumns } from './columns.tsx'
import { NewWalletButton } from './new-wallet.tsx'
import { type AnyWallet, walletQuery, walletsKey } from './queries.ts'
import { standingOf } from './wallet-state.tsx'

const route = getRouteApi('/shell/wallets')

/** All wallets of one kind, newest first, with their balances. */
export function WalletsPage() {
  const purser = usePurser()
  const queries = useQueryClient()
  const navigate = useNavigate()
  const { kind = 'managed' } = route.useSearch()
  const listing = useListing<AnyWallet>([...walletsKey, 'list', kind], (query, options) =>
    kind === 'own' ? purser.wallets.byo.list(query, options).page() : purser.wallets.master.list(query, options).page(),
  )
  useRefreshOn(['deposit.', 'transfer.', 'wallet.'], walletsKey)
  const open = useCallback(
    ({ id }: AnyWallet) => void navigate({ to: '/wallets/$walletId', params: { walletId: id } }),
    [navigate],
  )
  const prefetch = useCallback(
    ({ id }: AnyWallet) => void queries.prefetchQuery(walletQuery(purser, id)),
    [purser, queries],
  )
  return (
    <Page title="Wallets" state={summaryOf(listing, kind)} action={<NewWalletButton kind={kind} />} wide>
      <div className="mb-3">
        <Tabs
          label="Kind of wallet"
          to="/wallets"
          tabs={[
            { label: 'Managed', search: {}, isChosen: kind === 'managed' },
            { label: 'Your own', search: { kind: 'own' }, isChosen: kind === 'own' },
          ]}
        />
      </div>
      <ListCard
        label="Wallets"
        listing={listing}
        columns={walletColumns}
        rowKey={rowKey}
        compact={compact}
        onOpen={open}
        onHover={prefetch}
        empty={
          kind === 'own' ? (
            <Empty icon={<Wallet />} title="No wallets of your own yet" action={<NewWalletButton kind={kind} />}>
              Register an address whose key you keep. It takes payments; only you can spend from it.
            </Empty>
          ) : (
            <Empty icon={<Wallet />} title="No managed wallets yet" action={<NewWalletButton kind={kind} />}>
              The service keeps the key of a managed wallet, so that money can leave it under a policy that you set.
            </Empty>
          )
        }
      />
    </Page>
  )
}

const rowKey = ({ id }: AnyWallet) => id
const compact = (wallet: AnyWallet) => <CompactWallet wallet={wallet} />

function summaryOf(
  { rows, hasMore }: { readonly rows: readonly AnyWallet[]; readonly hasMore: boolean },
  kind: 'managed' | 'own',
): string {
  if (rows.length === 0) return 'The addresses that receive and send your money.'
  const words = kind === 'own' ? count(rows.length, 'wallet') : count(rows.length, 'managed wallet')
  const idle = rows.filter((wallet) => standingOf(wallet).state !== 'settled').length
  const shown = `${hasMore ? 'The newest ' : ''}${words}`
  return idle === 0 ? `${shown}, all active.` : `${shown}, ${(rows.length - idle).toLocaleString('en-US')} active.`
}
