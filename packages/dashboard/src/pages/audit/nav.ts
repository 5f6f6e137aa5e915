import { ScrollText } from 'lucide-react'
import type { NavEntry } from '../../shell/section.ts'

export const auditNav: readonly NavEntry[] = [
  { label: 'Audit log', icon: ScrollText, path: '/audit-log', group: 'organisation' },
]
