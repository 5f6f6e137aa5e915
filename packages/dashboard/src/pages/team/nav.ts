import { UserPlus, Users } from 'lucide-react'
import type { NavEntry } from '../../shell/section.ts'

export const teamNav: readonly NavEntry[] = [
  {
    label: 'Team',
    icon: Users,
    path: '/team',
    group: 'organisation',
    acts: [
      {
        label: 'Invite a person',
        icon: UserPlus,
        needs: 'admin',
        act: { load: async () => (await import('./invite-sheet.tsx')).InviteAct },
      },
    ],
  },
]
