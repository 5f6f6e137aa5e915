import type { Vault, VaultQuota } from '@purser/sdk'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import { FilterX, Vault as VaultIcon } from 'lucide-react'
import { useCallback } from 'react'
import { usePurser } from '../../api/context.ts'
import { useListing } from '../../api/listing.ts'
import { useRefreshOn } from '../../live/use-live.ts'
import { buttonClasses } from '../../ui/button.tsx'
import { Select } from '../../ui/form.tsx'
import { byteSize, count } from '../../ui/format.ts'
import { ListCard } from '../../ui/list-card.tsx'
import { Empty, Page } from '../../ui/page.tsx'
import { CompactVault, vaultColumns } from './columns.tsx'
import { NewVaultButton } from './new-vault.tsx'
import { vaultQuery, vaultQuotaQuery, vaultsKey } from './queries.ts'
import { readVaultsSearch } from './search.ts'

const route = getRouteApi('/shell/vaults')

/** All vaults, newest first, with what the plan leaves. */
export function VaultsPage() {
  const purser = usePurser()
  const queries = useQueryClient()
  const navigate = useNavigate()
  const { status } = route.useSearch()
  const quota = useQuery(vaultQuotaQuery(purser))
  const listing = useListing([...vaultsKey, 'list', status ?? 'any'], (query, options) =>
    purser.vaults.list({ ...query, ...(status !== undefined && { status }) }, options).page(),
  )
  useRefreshOn(['vault.'], vaultsKey)
  const open = useCallback(
    ({ id }: Vault) => void navigate({ to: '/vaults/$vaultId', params: { vaultId: id } }),
    [navigate],
  )
  const prefetch = useCallback(({ id }: Vault) => void queries.prefetchQuery(vaultQuery(purser, id)), [purser, queries])
  return (
    <Page title="Vaults" state={quotaWords(quota.data)} action={<NewVaultButton />} wide>
      <div className="mb-3 flex flex-wrap items-center gap-2">
        <Select
          aria-label="State"
          value={status ?? ''}
          onChange={({ target }) =>
            void navigate({ to: '/vaults', search: readVaultsSearch({ status: target.value }), replace: true })
          }
        >
          <option value="">Any state</option>
          <option value="active">Open</option>
          <option value="sealed">Sealed</option>
          <option value="persisted">Persisted</option>
        </Select>
      </div>
      <ListCard
        label="Vaults"
        listing={listing}
        columns={vaultColumns}
        rowKey={rowKey}
        compact={compact}
        onOpen={open}
        onHover={prefetch}
        empty={<NoVaults isFiltered={status !== undefined} />}
      />
    </Page>
  )
}

const rowKey = ({ id }: Vault) => id
const compact = (vault: Vault) => <CompactVault vault={vault} />

function quotaWords(quota: VaultQuota | undefined): string {
  if (quota === undefined) return 'The goods delivered for payments, sealed so that anyone can verify them.'
  const { active, storageBytes } = quota
  const vaults = isUnlimited(active)
    ? count(active.used, 'vault')
    : `${active.used.toLocaleString('en-US')} of ${count(active.limit, 'vault')}`
  const bytes = byteSize(storageBytes.used)
  return `${vaults}, with ${isUnlimited(storageBytes) ? bytes : `${bytes} of ${byteSize(storageBytes.limit)}`} stored.`
}

/** A plan without a limit says -1. */
function isUnlimited({ limit }: VaultQuota['active']): boolean {
  return limit < 0
}

function NoVaults({ isFiltered }: { isFiltered: boolean }) {
  if (isFiltered)
    return (
      <Empty
        icon={<FilterX />}
        title="No vault has this status"
        action={
          <Link to="/vaults" search={{}} className={buttonClasses()}>
            Show all vaults
          </Link>
        }
      />
    )
  return (
    <Empty icon={<VaultIcon />} title="No vaults yet" action={<NewVaultButton tone="primary" />}>
      A vault holds what was delivered for a payment: documents, files, and a live stream. A sealed vault has a signed
      proof.
    </Empty>
  )
}
