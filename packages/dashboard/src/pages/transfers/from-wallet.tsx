import { Link } from '@tanstack/react-router'
import { Network } from '../../ui/network.tsx'
import { Tip } from '../../ui/tip.tsx'
import { Id } from '../../ui/values.tsx'
import { walletPath } from '../wallets/wallet-path.ts'
import { useManagedWallets } from './wallets.ts'

/** The wallet that money left, by its name if it has one, with its chain. */
export function FromWallet({ walletId, chain }: { walletId: string; chain: string }) {
  const name = useManagedWallets().data?.find(({ id }) => id === walletId)?.name
  return (
    <>
      {name === undefined || name === null ? (
        <Id value={walletId} to={walletPath(walletId)} />
      ) : (
        <Tip text={walletId}>
          <Link to="/wallets/$walletId" params={{ walletId }} className="text-accent-text break-words hover:underline">
            {name}
          </Link>
        </Tip>
      )}{' '}
      <span className="text-ink-3">
        on <Network chain={chain} />
      </span>
    </>
  )
}
