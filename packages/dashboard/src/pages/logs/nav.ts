import { Logs } from 'lucide-react'
import type { NavEntry } from '../../shell/section.ts'

export const logsNav: readonly NavEntry[] = [
  {
    label: 'Logs',
    icon: Logs,
    path: '/logs',
    group: 'developers',
    opens: [{ prefix: 'req_', path: (id) => `/logs?open=${id}` }],
  },
]
