import { Plus, Wallet } from 'lucide-react'
import type { NavEntry } from '../../shell/section.ts'

const path = (id: string) => `/wallets/${id}`

export const walletsNav: readonly NavEntry[] = [
  {
    label: 'Wallets',
    icon: Wallet,
    path: '/wallets',
    group: 'wallets',
    opens: [
      { prefix: 'mwt_', path },
      { prefix: 'byw_', path },
      { prefix: 'cad_', path },
    ],
    acts: [
      {
        label: 'Create a wallet',
        icon: Plus,
        needs: 'member',
        act: { load: async () => (await import('./new-wallet.tsx')).NewManagedWalletSheet },
      },
    ],
  },
]
