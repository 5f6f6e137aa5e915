import type { Balance, MasterWallet } from '@purser/sdk'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { FlaskConical } from 'lucide-react'
import { use, useState } from 'react'
import { ChainsContext } from '../../api/chains.ts'
import { useMay, useWorkspace } from '../../api/context.ts'
import { Button } from '../../ui/button.tsx'
import { ErrorBlock } from '../../ui/error-block.tsx'
import { Dialog } from '../../ui/overlay.tsx'
import { toastDone } from '../../ui/toast.tsx'
import { partsQuery, walletsKey } from './queries.ts'

const amount = '0.05'
const pollMs = 1_000
/** Longest that the page reads the balance again until it shows the coin. */
const arrivalMsMax = 60_000

/**
 * Sends native coin for gas to a wallet of the test environment. No event reports native coin, so the balance is polled
 * until it has arrived.
 */
export function GasFaucet({ wallet, balances }: { wallet: MasterWallet; balances: readonly Balance[] | undefined }) {
  const { environment, purser } = useWorkspace()
  const mayAsk = useMay('member') && wallet.provisionStatus === 'active'
  const queries = useQueryClient()
  const coin = use(ChainsContext).find(({ name }) => name === wallet.chain)?.nativeCoin?.symbol
  const present = balances?.find(({ tokenSymbol }) => tokenSymbol === coin)?.rawBalance
  const [awaited, setAwaited] = useState<{ readonly before: string; readonly until: number }>()
  useQuery({
    ...partsQuery(purser, wallet),
    enabled: awaited !== undefined,
    refetchInterval: () =>
      awaited !== undefined && present === awaited.before && Date.now() < awaited.until ? pollMs : false,
  })
  const give = useMutation({
    mutationFn: () => purser.test.deposits.create({ walletId: wallet.id, token: coin ?? '', amount }),
    onSuccess: () => {
      setAwaited({ before: present ?? '0', until: Date.now() + arrivalMsMax })
      toastDone(`The faucet sends ${amount} ${coin}`)
      void queries.invalidateQueries({ queryKey: [...walletsKey, 'balances', wallet.id] })
    },
  })
  if (environment !== 'test' || !mayAsk || coin === undefined || present === undefined) return null
  return (
    <>
      <Button small busy={give.isPending} onClick={() => give.mutate()}>
        <FlaskConical aria-hidden /> Get {amount} {coin} for gas
      </Button>
      {give.error !== null && (
        <Dialog
          open
          onClose={give.reset}
          title={`Get ${coin} for gas`}
          footer={<Button onClick={give.reset}>Close</Button>}
        >
          <ErrorBlock error={give.error} onRetry={() => give.mutate()} />
        </Dialog>
      )}
    </>
  )
}
