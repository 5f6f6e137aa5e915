import { Zap } from 'lucide-react'
import type { NavEntry } from '../../shell/section.ts'

export const eventsNav: readonly NavEntry[] = [
  {
    label: 'Events',
    icon: Zap,
    path: '/events',
    group: 'developers',
    opens: [{ prefix: 'evt_', path: (id) => `/events?open=${id}` }],
  },
]
