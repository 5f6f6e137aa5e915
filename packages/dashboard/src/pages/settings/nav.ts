import { Settings } from 'lucide-react'
import type { NavEntry } from '../../shell/section.ts'

export const settingsNav: readonly NavEntry[] = [
  { label: 'Settings', icon: Settings, path: '/settings', group: 'organisation' },
]
