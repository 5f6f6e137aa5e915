import { CircleUser } from 'lucide-react'
import type { NavEntry } from '../../shell/section.ts'

/** Shown in the menu at the foot of the navigation, and in the command palette. */
export const accountNav: readonly NavEntry[] = [
  { label: 'Your account', icon: CircleUser, path: '/account', group: 'person' },
]
