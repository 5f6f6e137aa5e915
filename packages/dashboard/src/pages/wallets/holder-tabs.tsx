import { Tabs } from '../../ui/tabs.tsx'
import type { Holder } from './queries.ts'
import type { WalletView } from './views.ts'
import { walletPath } from './wallet-path.ts'

interface HolderTabsProps {
  readonly holder: Holder
  readonly chosen: WalletView | undefined
  /** The views beside all deposits and transfers. */
  readonly views: readonly WalletView[]
}

const labels: Readonly<Record<WalletView, string>> = {
  reserved: 'Reserved',
  'on-hold': 'On hold',
  children: 'Child addresses',
  sweeps: 'Sweeps',
}

/** The lists of a wallet or child address, each with an address of its own. */
export function HolderTabs({ holder, chosen, views }: HolderTabsProps) {
  return (
    <Tabs
      label="Lists"
      to={walletPath(holder.id)}
      tabs={[
        { label: 'Deposits and transfers', search: {}, isChosen: chosen === undefined },
        ...views.map((view) => ({ label: labels[view], search: { view }, isChosen: view === chosen })),
      ]}
    />
  )
}
