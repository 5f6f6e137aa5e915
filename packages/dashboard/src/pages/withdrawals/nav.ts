import { Landmark } from 'lucide-react'
import type { NavEntry } from '../../shell/section.ts'

export const withdrawalsNav: readonly NavEntry[] = [
  {
    label: 'Withdrawals',
    icon: Landmark,
    path: '/withdrawals',
    group: 'wallets',
    opens: [{ prefix: 'wdr_', path: (id) => `/withdrawals/${id}` }],
  },
]
