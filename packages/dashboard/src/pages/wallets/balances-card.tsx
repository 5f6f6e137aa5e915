import { useQuery } from '@tanstack/react-query'
import { usePurser } from '../../api/context.ts'
import { ErrorBlock } from '../../ui/error-block.tsx'
import { Network } from '../../ui/network.tsx'
import { Card, Skeleton } from '../../ui/page.tsx'
import { Amount } from '../../ui/values.tsx'
import { type AnyWallet, balancesQuery, inOrder } from './queries.ts'

/** The present balances of the wallet's address on its chain, by token. */
export function BalancesCard({ wallet }: { wallet: AnyWallet }) {
  const { data, error, refetch } = useQuery(balancesQuery(usePurser(), wallet.id))
  return (
    <Card title="Balance" flush>
      {data === undefined ? (
        <div className="p-4">
          {error === null ? <Skeleton lines={2} /> : <ErrorBlock error={error} onRetry={() => refetch()} />}
        </div>
      ) : (
        <ul>
          {inOrder(data).map(({ tokenSymbol, formattedBalance, rawBalance, chain }) => (
            <li
              key={`${chain}-${tokenSymbol}`}
              className="flex min-h-11 flex-wrap items-center justify-between gap-x-4 gap-y-1 border-b border-line px-4 py-2 last:border-b-0"
            >
              <span>
                {tokenSymbol}{' '}
                <span className="text-ink-3">
                  on <Network chain={chain} />
                </span>
              </span>
              <Amount
                value={formattedBalance}
                token={tokenSymbol}
                raw={rawBalance}
                className={rawBalance === '0' ? 'text-ink-3' : 'text-lg font-medium'}
              />
            </li>
          ))}
        </ul>
      )}
    </Card>
  )
}
