import type { ChildAddress, MasterWallet } from '@purser/sdk'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { MoreHorizontal, Pencil, QrCode as QrIcon } from 'lucide-react'
import { useState } from 'react'
import { useMay, usePurser } from '../../api/context.ts'
import { Button } from '../../ui/button.tsx'
import { DetailPage } from '../../ui/detail-page.tsx'
import { ErrorBlock } from '../../ui/error-block.tsx'
import { middleTruncate } from '../../ui/format.ts'
import { Menu } from '../../ui/menu.tsx'
import { Network } from '../../ui/network.tsx'
import { Card, Empty, Fact, Facts, Skeleton } from '../../ui/page.tsx'
import { Id, OnChain, Time } from '../../ui/values.tsx'
import { BalancesCard } from './balances-card.tsx'
import { HolderTabs } from './holder-tabs.tsx'
import { childQuery } from './queries.ts'
import { ReceiveSheet } from './receive-sheet.tsx'
import { RenameDialog } from './rename-dialog.tsx'
import { Reserved } from './reserved.tsx'
import { SweepButton } from './sweep-dialog.tsx'
import { WalletBadge, walletName } from './wallet-state.tsx'
import { WalletTransactions } from './wallet-transactions.tsx'

interface ChildProps {
  readonly child: ChildAddress
  readonly wallet: MasterWallet
}

const route = getRouteApi('/shell/wallets/$walletId')

/** One child address: its balance, deposits and sweeps, and the amounts on hold or reserved. */
export function ChildPage({ id }: { id: string }) {
  const { data, error, refetch } = useQuery(childQuery(usePurser(), id))
  if (data === undefined)
    return (
      <DetailPage to="/wallets" list="Wallets">
        {error === null ? <Skeleton lines={9} /> : <ErrorBlock error={error} onRetry={() => refetch()} />}
      </DetailPage>
    )
  if (data === null)
    return (
      <DetailPage to="/wallets" list="Wallets">
        <Empty icon={<QrIcon />} title="Child address not found" heading="h1">
          It may belong to another organisation, or to the other environment.
        </Empty>
      </DetailPage>
    )
  const { wallet } = data
  return (
    <DetailPage to={`/wallets/${wallet.id}`} search={{ view: 'children' }} list={walletName(wallet)}>
      <ChildDetail {...data} />
    </DetailPage>
  )
}

function ChildDetail({ child, wallet }: ChildProps) {
  const { view } = route.useSearch()
  return (
    <div className="flex flex-col gap-5">
      <ChildHead child={child} wallet={wallet} />
      <div className="grid items-start gap-5 lg:grid-cols-main-side">
        <BalancesCard holder={child} />
        <ChildFacts child={child} wallet={wallet} />
      </div>
      <section className="flex min-w-0 flex-col gap-3">
        <HolderTabs holder={child} chosen={view} views={['sweeps', 'reserved', 'on-hold']} />
        {view === 'reserved' ? (
          <Reserved holder={child} wallet={wallet} />
        ) : (
          <WalletTransactions holder={child} view={view === 'on-hold' ? view : view === 'sweeps' ? 'swept' : 'all'} />
        )}
      </section>
    </div>
  )
}

function ChildHead({ child, wallet }: ChildProps) {
  const purser = usePurser()
  const mayChange = useMay('member')
  const [open, setOpen] = useState<'receive' | 'rename'>()
  const close = () => setOpen(undefined)
  const { id, address, name } = child
  const { chain, supportedTokens, provisionStatus } = wallet
  return (
    <header className="flex flex-wrap items-start justify-between gap-x-6 gap-y-3">
      <div className="flex min-w-0 flex-col gap-1">
        <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
          <h1 className="min-w-0 text-xl font-semibold tracking-tight break-words">{name ?? middleTruncate(id)}</h1>
          <WalletBadge wallet={wallet} />
        </div>
        <p className="text-ink-2">
          A child address of <WalletLink wallet={wallet} />. That wallet’s policy applies to it too.
        </p>
      </div>
      <div className="flex flex-wrap gap-2">
        {provisionStatus === 'active' && (
          <Button tone="primary" onClick={() => setOpen('receive')}>
            <QrIcon aria-hidden /> Receive
          </Button>
        )}
        <SweepButton wallet={wallet} child={child} />
        {mayChange && (
          <Menu
            trigger={
              <Button aria-label="More actions">
                <MoreHorizontal aria-hidden />
              </Button>
            }
            groups={[{ items: [{ label: 'Rename', icon: <Pencil />, onChoose: () => setOpen('rename') }] }]}
          />
        )}
      </div>
      {open === 'receive' && <ReceiveSheet wallet={{ id, address, chain, supportedTokens }} onClose={close} />}
      {open === 'rename' && (
        <RenameDialog
          what="child address"
          name={name}
          onSave={(next) => purser.wallets.children.update(wallet.id, id, { name: next })}
          onClose={close}
        />
      )}
    </header>
  )
}

function WalletLink({ wallet }: Pick<ChildProps, 'wallet'>) {
  return (
    <Link to="/wallets/$walletId" params={{ walletId: wallet.id }} className="break-words text-accent-text underline">
      {walletName(wallet)}
    </Link>
  )
}

function ChildFacts({ child, wallet }: ChildProps) {
  return (
    <Card title="Details">
      <Facts>
        <Fact name="Child address">
          <Id value={child.id} />
        </Fact>
        <Fact name="Address">
          <OnChain value={child.address} network={wallet.chain} kind="address" />
        </Fact>
        <Fact name="Wallet">
          <WalletLink wallet={wallet} />
        </Fact>
        <Fact name="Network">
          <Network chain={wallet.chain} />
        </Fact>
        <Fact name="Tokens">{wallet.supportedTokens.join(', ')}</Fact>
        <Fact name="Path">
          <span className="font-mono text-sm">{child.derivationPath}</span>
        </Fact>
        <Fact name="Created">
          <Time at={child.createdAt} full />
        </Fact>
      </Facts>
    </Card>
  )
}
