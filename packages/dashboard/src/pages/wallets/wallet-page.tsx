import { useQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { usePurser } from '../../api/context.ts'
import { useRefreshOn } from '../../live/use-live.ts'
import { DetailPage } from '../../ui/detail-page.tsx'
import { ErrorBlock } from '../../ui/error-block.tsx'
import { Network } from '../../ui/network.tsx'
import { Card, Fact, Facts, Skeleton } from '../../ui/page.tsx'
import { Tabs } from '../../ui/tabs.tsx'
import { Id, OnChain, Time } from '../../ui/values.tsx'
import { BalancesCard } from './balances-card.tsx'
import { PolicyCard } from './policy-card.tsx'
import { type AnyWallet, isManaged, walletQuery, walletsKey } from './queries.ts'
import { WalletChildren } from './wallet-children.tsx'
import { WalletHead } from './wallet-head.tsx'
import { WalletTransactions } from './wallet-transactions.tsx'

export interface WalletSearch {
  readonly view?: 'children' | 'on-hold'
}

const route = getRouteApi('/shell/wallets/$walletId')

/** One wallet: what it has, what may leave it, and what came and went. */
export function WalletPage() {
  const { walletId } = route.useParams()
  const { view } = route.useSearch()
  const found = useQuery(walletQuery(usePurser(), walletId))
  useRefreshOn(['deposit.', 'transfer.', 'withdrawal.', 'wallet.'], walletsKey)
  return (
    <DetailPage to="/wallets" list="Wallets">
      {found.data !== undefined ? (
        <WalletDetail key={walletId} wallet={found.data} view={view} />
      ) : found.error === null ? (
        <Skeleton lines={9} />
      ) : (
        <ErrorBlock error={found.error} onRetry={() => found.refetch()} />
      )}
    </DetailPage>
  )
}

function WalletDetail({ wallet, view }: { wallet: AnyWallet; view: WalletSearch['view'] }) {
  const managed = isManaged(wallet)
  const tab = (label: string, name?: 'children' | 'on-hold') => ({
    label,
    search: name === undefined ? {} : { view: name },
    isChosen: view === name,
  })
  return (
    <div className="flex flex-col gap-5">
      <WalletHead wallet={wallet} />
      <div className="grid items-start gap-5 lg:grid-cols-[minmax(0,2fr)_minmax(0,1fr)]">
        <div className="flex min-w-0 flex-col gap-5">
          <BalancesCard wallet={wallet} />
          {managed && <PolicyCard walletId={wallet.id} tokens={wallet.supportedTokens} />}
        </div>
        <WalletFacts wallet={wallet} />
      </div>
      <section className="flex min-w-0 flex-col gap-3">
        <Tabs
          label="Of this wallet"
          to={`/wallets/${wallet.id}`}
          tabs={[
            tab('Deposits and transfers'),
            tab('On hold', 'on-hold'),
            ...(managed ? [tab('Child addresses', 'children')] : []),
          ]}
        />
        {managed && view === 'children' ? (
          <WalletChildren wallet={wallet} />
        ) : (
          <WalletTransactions wallet={wallet} onHoldOnly={view === 'on-hold'} />
        )}
      </section>
    </div>
  )
}

function WalletFacts({ wallet }: { wallet: AnyWallet }) {
  return (
    <Card title="Facts">
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
