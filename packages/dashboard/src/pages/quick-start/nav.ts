import { Rocket } from 'lucide-react'
import type { NavEntry } from '../../shell/section.ts'

export const quickStartNav: readonly NavEntry[] = [
  { label: 'Quick start', icon: Rocket, path: '/quick-start', group: 'developers' },
]
