import { Key, KeyRound } from 'lucide-react'
import type { NavEntry } from '../../shell/section.ts'

export const keysNav: readonly NavEntry[] = [
  {
    label: 'Keys',
    icon: Key,
    path: '/keys',
    group: 'developers',
    opens: [{ prefix: 'key_', path: () => '/keys' }],
    acts: [
      {
        label: 'Create an API key',
        icon: KeyRound,
        needs: 'admin',
        act: { load: async () => (await import('./new-key.tsx')).NewKeySheet },
      },
    ],
  },
]
