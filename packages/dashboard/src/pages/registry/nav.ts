import { Route } from 'lucide-react'
import type { NavEntry } from '../../shell/section.ts'

export const registryNav: readonly NavEntry[] = [
  {
    label: 'Routes',
    icon: Route,
    path: '/routes',
    group: 'money in',
    opens: [{ prefix: 'reg_', path: (id) => `/routes?open=${id}` }],
  },
]
