import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { usePurser } from '../../api/context.ts'
import { Button } from '../../ui/button.tsx'
import { ErrorBlock } from '../../ui/error-block.tsx'
import { toastDone, toastFailed } from '../../ui/toast.tsx'
import { Id, Time } from '../../ui/values.tsx'
import { vaultTokensQuery } from './queries.ts'

/** The tokens that read a vault now, each with a button that ends it. Nothing where there is none. */
export function VaultTokens({ vaultId }: { vaultId: string }) {
  const purser = usePurser()
  const queries = useQueryClient()
  const query = vaultTokensQuery(purser, vaultId)
  const tokens = useQuery(query)
  const revoke = useMutation({
    mutationFn: (tokenId: string) => purser.vaults.tokens.revoke(vaultId, tokenId),
    onSuccess: () => {
      toastDone('The token is revoked')
      void queries.invalidateQueries({ queryKey: query.queryKey })
    },
    onError: toastFailed,
  })
  if (tokens.error !== null) return <ErrorBlock error={tokens.error} onRetry={() => void tokens.refetch()} />
  if (tokens.data === undefined || tokens.data.length === 0) return null
  return (
    <div>
      <h4 className="mb-1 font-medium">Valid read tokens</h4>
      <ul className="divide-y divide-line">
        {tokens.data.map(({ id, expiresAt }) => (
          <li key={id} className="flex flex-wrap items-center justify-between gap-x-4 gap-y-1 py-2">
            <Id value={id} />
            <span className="text-ink-2">
              Expires <Time at={expiresAt} />
            </span>
            <Button
              tone="danger"
              aria-label={`Revoke ${id}`}
              busy={revoke.isPending && revoke.variables === id}
              onClick={() => revoke.mutate(id)}
            >
              Revoke
            </Button>
          </li>
        ))}
      </ul>
    </div>
  )
}
