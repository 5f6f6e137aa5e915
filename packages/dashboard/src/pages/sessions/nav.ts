import { KeyRound } from 'lucide-react'
import type { NavEntry } from '../../shell/section.ts'

export const sessionsNav: readonly NavEntry[] = [
  { label: 'Sessions', icon: KeyRound, path: '/sessions', group: 'money in' },
]
