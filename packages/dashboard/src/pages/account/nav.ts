import { CircleUser } from 'lucide-react'
import type { NavEntry } from '../../shell/section.ts'

/** Its link is the menu at the foot of the rail. */
export const accountNav: readonly NavEntry[] = [
  { label: 'Your account', icon: CircleUser, path: '/account', group: 'person' },
]
