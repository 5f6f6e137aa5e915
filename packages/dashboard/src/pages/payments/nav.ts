import { ArrowDownToLine, FlaskConical } from 'lucide-react'
import type { NavEntry } from '../../shell/section.ts'
import { payNow } from './pay-now.ts'

export const paymentsNav: readonly NavEntry[] = [
  {
    label: 'Payments',
    icon: ArrowDownToLine,
    path: '/payments',
    group: 'money in',
    opens: [{ prefix: 'pay_', path: (id) => `/payments/${id}` }],
    acts: [
      {
        label: 'Make a test payment',
        icon: FlaskConical,
        needs: 'member',
        only: 'test',
        act: { run: payNow },
      },
    ],
  },
]
