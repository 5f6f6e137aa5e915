import { Plus, Vault } from 'lucide-react'
import type { NavEntry } from '../../shell/section.ts'

export const vaultsNav: readonly NavEntry[] = [
  {
    label: 'Vaults',
    icon: Vault,
    path: '/vaults',
    group: 'money in',
    opens: [{ prefix: 'vlt_', path: (id) => `/vaults/${id}` }],
    acts: [
      {
        label: 'Create a vault',
        icon: Plus,
        needs: 'member',
        act: { load: async () => (await import('./new-vault.tsx')).NewVaultDialog },
      },
    ],
  },
]
