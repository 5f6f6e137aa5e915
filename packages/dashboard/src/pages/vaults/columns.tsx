import type { Vault } from '@purser/sdk'
import { createdColumn } from '../../ui/created-column.tsx'
import { RowLink } from '../../ui/row-link.tsx'
import { Tag } from '../../ui/state.tsx'
import type { Column } from '../../ui/table.tsx'
import { Id, Time } from '../../ui/values.tsx'
import { VaultBadge, vaultName } from './vault-state.tsx'

export const vaultColumns: readonly Column<Vault>[] = [
  { id: 'name', head: 'Vault', cell: (vault) => <NameCell vault={vault} /> },
  { id: 'state', head: 'State', width: 'w-30', cell: (vault) => <VaultBadge vault={vault} /> },
  {
    id: 'ends',
    head: 'Expires',
    width: 'w-35',
    from: 'lg',
    cell: ({ ttl }) => <Ends ttl={ttl} />,
  },
  {
    id: 'session',
    head: 'Opened by',
    width: 'w-28',
    from: 'xl',
    cell: ({ sessionId }) => <Tag>{sessionId === null ? 'API' : 'Session'}</Tag>,
  },
  { id: 'id', head: 'Id', width: 'w-39', from: 'lg', cell: ({ id }) => <Id value={id} /> },
  createdColumn(),
]

export function Ends({ ttl }: { ttl: string | null }) {
  return ttl === null ? <span className="text-ink-2">No expiry</span> : <Time at={ttl} />
}

function NameCell({ vault }: { vault: Vault }) {
  return (
    <RowLink to={`/vaults/${vault.id}`}>
      <span className="truncate font-medium">{vaultName(vault)}</span>
    </RowLink>
  )
}

export function CompactVault({ vault }: { vault: Vault }) {
  return (
    <>
      <span className="flex items-center justify-between gap-3">
        <NameCell vault={vault} />
        <VaultBadge vault={vault} />
      </span>
      <span className="flex items-center justify-between gap-3 text-sm text-ink-2">
        <Id value={vault.id} />
        <Time at={vault.createdAt} />
      </span>
    </>
  )
}
