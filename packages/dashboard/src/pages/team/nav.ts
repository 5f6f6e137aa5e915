import { Users } from 'lucide-react'
import type { NavEntry } from '../../shell/section.ts'

export const teamNav: readonly NavEntry[] = [{ label: 'Team', icon: Users, path: '/team', group: 'organization' }]
