import { useQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { usePurser } from '../../api/context.ts'
import { useRefreshOn } from '../../live/use-live.ts'
import { DetailPage } from '../../ui/detail-page.tsx'
import { ErrorBlock } from '../../ui/error-block.tsx'
import { Network } from '../../ui/network.tsx'
import { Card, Fact, Facts, Skeleton } from '../../ui/page.tsx'
import { Id, OnChain, Time } from '../../ui/values.tsx'
import { AutoSweepWords } from './auto-sweep.tsx'
import { BalancesCard } from './balances-card.tsx'
import { ChildPage } from './child-page.tsx'
import { HolderTabs } from './holder-tabs.tsx'
import { PolicyCard } from './policy-card.tsx'
import { type AnyWallet, isChildId, isManaged, walletQuery, walletsKey } from './queries.ts'
import { Reserved } from './reserved.tsx'
import { WalletChildren } from './wallet-children.tsx'
import { WalletHead } from './wallet-head.tsx'
import { WalletSweeps } from './wallet-sweeps.tsx'
import { WalletTransactions } from './wallet-transactions.tsx'

const route = getRouteApi('/shell/wallets/$walletId')

/** One wallet or child address: its balances, its spend policy and its transactions. */
export function WalletPage() {
  const { walletId } = route.useParams()
  useRefreshOn(['deposit.', 'transfer.', 'withdrawal.', 'wallet.'], walletsKey)
  return isChildId(walletId) ? <ChildPage key={walletId} id={walletId} /> : <OneWallet key={walletId} id={walletId} />
}

function OneWallet({ id }: { id: string }) {
  const found = useQuery(walletQuery(usePurser(), id))
  return (
    <DetailPage to="/wallets" list="Wallets">
      {found.data !== undefined ? (
        <WalletDetail wallet={found.data} />
      ) : found.error === null ? (
        <Skeleton lines={9} />
      ) : (
        <ErrorBlock error={found.error} onRetry={() => found.refetch()} />
      )}
    </DetailPage>
  )
}

function WalletDetail({ wallet }: { wallet: AnyWallet }) {
  const { view, open } = route.useSearch()
  const managed = isManaged(wallet)
  return (
    <div className="flex flex-col gap-5">
      <WalletHead wallet={wallet} />
      <div className="grid items-start gap-5 lg:grid-cols-main-side">
        <div className="flex min-w-0 flex-col gap-5">
          <BalancesCard holder={wallet} {...(managed && { gasOn: wallet })} />
          {managed && <PolicyCard wallet={wallet} />}
        </div>
        <WalletFacts wallet={wallet} />
      </div>
      <section className="flex min-w-0 flex-col gap-3">
        <HolderTabs
          holder={wallet}
          chosen={view}
          views={managed ? ['reserved', 'on-hold', 'children', 'sweeps'] : ['on-hold']}
        />
        {managed && view === 'children' ? (
          <WalletChildren wallet={wallet} />
        ) : managed && view === 'sweeps' ? (
          <WalletSweeps wallet={wallet} openId={open} />
        ) : managed && view === 'reserved' ? (
          <Reserved holder={wallet} wallet={wallet} />
        ) : (
          <WalletTransactions holder={wallet} view={view === 'on-hold' ? 'on-hold' : 'all'} />
        )}
      </section>
    </div>
  )
}

function WalletFacts({ wallet }: { wallet: AnyWallet }) {
  return (
    <Card title="Details">
      <Facts>
        <Fact name="Wallet">
          <Id value={wallet.id} />
        </Fact>
        <Fact name="Address">
          <OnChain value={wallet.address} network={wallet.chain} kind="address" />
        </Fact>
        <Fact name="Network">
          <Network chain={wallet.chain} />
        </Fact>
        <Fact name="Tokens">{wallet.supportedTokens.join(', ')}</Fact>
        {isManaged(wallet) && wallet.autoSweep !== null && (
          <Fact name="Automatic sweep">
            <AutoSweepWords {...wallet.autoSweep} />
          </Fact>
        )}
        {isManaged(wallet) && wallet.retiredAt !== null && (
          <Fact name="Retired">
            <Time at={wallet.retiredAt} full />
          </Fact>
        )}
        <Fact name="Created">
          <Time at={wallet.createdAt} full />
        </Fact>
      </Facts>
    </Card>
  )
}
