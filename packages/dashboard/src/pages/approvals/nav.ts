import { UserCheck } from 'lucide-react'
import type { NavEntry } from '../../shell/section.ts'
import { WaitingCount } from './waiting-count.tsx'

export const approvalsNav: readonly NavEntry[] = [
  {
    label: 'Approvals',
    icon: UserCheck,
    path: '/approvals',
    group: 'wallets',
    badge: WaitingCount,
    opens: [{ prefix: 'apr_', path: (id) => `/approvals/${id}` }],
  },
]
