import { ArrowDownToLine } from 'lucide-react'
import type { NavEntry } from '../../shell/section.ts'

export const paymentsNav: readonly NavEntry[] = [
  {
    label: 'Payments',
    icon: ArrowDownToLine,
    path: '/payments',
    group: 'money in',
    opens: [{ prefix: 'pay_', path: (id) => `/payments/${id}` }],
  },
]
