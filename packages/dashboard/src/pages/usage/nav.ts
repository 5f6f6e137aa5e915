import { Gauge } from 'lucide-react'
import type { NavEntry } from '../../shell/section.ts'

export const usageNav: readonly NavEntry[] = [
  { label: 'Usage and plan', icon: Gauge, path: '/usage', group: 'organisation' },
]
