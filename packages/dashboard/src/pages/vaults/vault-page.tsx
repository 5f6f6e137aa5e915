import { useQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { usePurser } from '../../api/context.ts'
import { DetailPage } from '../../ui/detail-page.tsx'
import { ErrorBlock } from '../../ui/error-block.tsx'
import { Skeleton } from '../../ui/page.tsx'
import { vaultQuery } from './queries.ts'
import { VaultFacts } from './vault-facts.tsx'
import { VaultHead } from './vault-head.tsx'
import { VaultItems } from './vault-items.tsx'
import { VaultProof } from './vault-proof.tsx'
import { isOpen } from './vault-state.tsx'
import { VaultStream } from './vault-stream.tsx'

const route = getRouteApi('/shell/vaults/$vaultId')

/** A vault as it fills, and its proof once it is sealed. */
export function VaultPage() {
  const { vaultId } = route.useParams()
  return (
    <DetailPage to="/vaults" list="Vaults">
      <VaultDetail key={vaultId} vaultId={vaultId} />
    </DetailPage>
  )
}

function VaultDetail({ vaultId }: { vaultId: string }) {
  const purser = usePurser()
  const { item } = route.useSearch()
  const vault = useQuery(vaultQuery(purser, vaultId))
  if (vault.data === undefined)
    return vault.error === null ? (
      <Skeleton lines={9} />
    ) : (
      <ErrorBlock error={vault.error} onRetry={() => vault.refetch()} />
    )
  return (
    <div className="flex flex-col gap-5">
      <VaultHead vault={vault.data} />
      <div className="grid items-start gap-5 lg:grid-cols-main-side">
        <div className="flex min-w-0 flex-col gap-5">
          {!isOpen(vault.data) && <VaultProof vault={vault.data} />}
          <VaultItems vault={vault.data} chosen={item} />
        </div>
        <div className="flex min-w-0 flex-col gap-5">
          <VaultStream vault={vault.data} />
          <VaultFacts vault={vault.data} />
        </div>
      </div>
    </div>
  )
}
