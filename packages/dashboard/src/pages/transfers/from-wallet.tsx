import { Link } from '@tanstack/react-router'
import { middleTruncate } from '../../ui/format.ts'
import { Network } from '../../ui/network.tsx'
import { Tip } from '../../ui/tip.tsx'
import { Id } from '../../ui/values.tsx'
import { walletPath } from '../wallets/wallet-path.ts'
import { useWalletName } from './wallets.ts'

/** The source wallet or child address with its chain, by its name if it is known. */
export function FromWallet({ walletId, chain }: { walletId: string; chain: string }) {
  return (
    <>
      <WalletLink walletId={walletId} />{' '}
      <span className="text-ink-3">
        on <Network chain={chain} />
      </span>
    </>
  )
}

/** The name of a wallet, or its id, linked to its page. */
export function WalletLink({ walletId }: { walletId: string }) {
  const name = useWalletName(walletId)
  if (name === undefined) return <Id value={walletId} to={walletPath(walletId)} />
  return (
    <Tip text={walletId}>
      <Link to="/wallets/$walletId" params={{ walletId }} className="break-words text-accent-text hover:underline">
        {name}
      </Link>
    </Tip>
  )
}

/** The name of the source wallet, for a row of a list; without a link, because the row opens the movement. */
export function FromName({ walletId }: { walletId: string }) {
  const name = useWalletName(walletId)
  return (
    <Tip text={walletId}>
      {name === undefined ? <span className="font-mono text-sm">{middleTruncate(walletId)}</span> : <span>{name}</span>}
    </Tip>
  )
}
