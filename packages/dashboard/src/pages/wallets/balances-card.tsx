import type { Balance, MasterWallet } from '@purser/sdk'
import { useQuery } from '@tanstack/react-query'
import { usePurser } from '../../api/context.ts'
import { classes } from '../../ui/classes.ts'
import { ErrorBlock } from '../../ui/error-block.tsx'
import { Network } from '../../ui/network.tsx'
import { Card, Skeleton } from '../../ui/page.tsx'
import { Amount } from '../../ui/values.tsx'
import { BalanceParts } from './balance-parts.tsx'
import { GasFaucet } from './gas-faucet.tsx'
import { balancesQuery, type Holder, inOrder, isKeptHere, partsQuery } from './queries.ts'

interface BalancesCardProps {
  readonly holder: Holder
  /** The managed wallet that the faucet gives coin for gas; a child address needs none. */
  readonly gasOn?: MasterWallet
}

/** The present balances of the address on its chain, by token; for a managed wallet also the available, reserved and on-hold amounts. */
export function BalancesCard({ holder, gasOn }: BalancesCardProps) {
  const purser = usePurser()
  // Two reads: where the parts cannot be read, the balance still can.
  const plain = useQuery(balancesQuery(purser, holder))
  const withParts = useQuery({ ...partsQuery(purser, holder), enabled: isKeptHere(holder) })
  const balances = withParts.data ?? plain.data
  return (
    <Card title="Balance" aside={gasOn !== undefined && <GasFaucet wallet={gasOn} balances={balances} />} flush>
      {balances === undefined ? (
        <div className="p-4">
          {plain.error === null ? <Skeleton lines={2} /> : <ErrorBlock error={plain.error} onRetry={plain.refetch} />}
        </div>
      ) : (
        <ul>
          {inOrder(balances).map((balance) => (
            <BalanceRow key={`${balance.chain}-${balance.tokenSymbol}`} balance={balance} walletId={holder.id} />
          ))}
        </ul>
      )}
      {balances !== undefined && withParts.error !== null && (
        <div className="border-t border-line p-4">
          <ErrorBlock error={withParts.error} onRetry={withParts.refetch} />
        </div>
      )}
    </Card>
  )
}

function BalanceRow({ balance, walletId }: { balance: Balance; walletId: string }) {
  const { tokenSymbol, formattedBalance, rawBalance, chain, parts } = balance
  return (
    <li className="border-b border-line px-4 py-2 last:border-b-0">
      <div className="flex min-h-7 flex-wrap items-center justify-between gap-x-4 gap-y-1">
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
          className={classes('ml-auto', rawBalance === '0' ? 'text-ink-3' : 'text-lg font-medium')}
        />
      </div>
      {parts !== undefined && rawBalance !== '0' && (
        <BalanceParts parts={parts} token={tokenSymbol} walletId={walletId} />
      )}
    </li>
  )
}
