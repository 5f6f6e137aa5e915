import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { usePurser } from '../../api/context.ts'
import { useRefreshOn } from '../../live/use-live.ts'
import { ErrorBlock } from '../../ui/error-block.tsx'
import { Network } from '../../ui/network.tsx'
import { Card, Skeleton } from '../../ui/page.tsx'
import { HolderBalance } from '../wallets/columns.tsx'
import { walletsKey } from '../wallets/queries.ts'
import { walletName } from '../wallets/wallet-state.tsx'

/** Each balance costs an RPC request. The page of wallets shows all. */
const walletsMax = 4

/** The newest managed wallets; undefined while they are read. */
function useNewestWallets() {
  const purser = usePurser()
  const { data, error, refetch } = useQuery({
    queryKey: [...walletsKey, 'newest'],
    queryFn: async ({ signal }) => (await purser.wallets.master.list({ limit: 50 }, { signal }).page()).items,
  })
  const active = data?.filter(({ provisionStatus }) => provisionStatus === 'active').slice(0, walletsMax)
  return { active, error, refetch }
}

/** The newest managed wallets with their balances. Renders nothing if there are none. */
export function WalletBalances() {
  const { active, error, refetch } = useNewestWallets()
  useRefreshOn(['deposit.', 'transfer.'], walletsKey)
  if (active?.length === 0) return null
  return (
    <Card
      title="Wallets"
      aside={
        <Link to="/wallets" className="text-sm text-accent-text hover:underline">
          All wallets
        </Link>
      }
    >
      {active === undefined ? (
        error === null ? (
          <Skeleton lines={2} />
        ) : (
          <ErrorBlock error={error} onRetry={() => refetch()} />
        )
      ) : (
        <ul className="flex flex-col gap-3">
          {active.map((wallet) => (
            <li key={wallet.id} className="flex items-start justify-between gap-3">
              <span className="min-w-0">
                <Link
                  to="/wallets/$walletId"
                  params={{ walletId: wallet.id }}
                  className="block truncate hover:text-accent-text hover:underline"
                >
                  {walletName(wallet)}
                </Link>
                <span className="block text-sm text-ink-3">
                  <Network chain={wallet.chain} />
                </span>
              </span>
              <HolderBalance holder={wallet} />
            </li>
          ))}
        </ul>
      )}
    </Card>
  )
}
