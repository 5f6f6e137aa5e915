import { ArrowLeftRight, Send } from 'lucide-react'
import type { NavEntry } from '../../shell/section.ts'

export const transfersNav: readonly NavEntry[] = [
  {
    label: 'Transfers',
    icon: ArrowLeftRight,
    path: '/transfers',
    group: 'wallets',
    opens: [{ prefix: 'wtx_', path: (id) => `/transfers/${id}` }],
    acts: [
      {
        label: 'Send money',
        icon: Send,
        needs: 'member',
        act: { load: async () => (await import('./send-money.tsx')).SendMoneySheet },
      },
    ],
  },
]
