import { useMutation } from '@tanstack/react-query'
import { FlaskConical, TriangleAlert } from 'lucide-react'
import { useMay, useWorkspace } from '../../api/context.ts'
import { Button } from '../../ui/button.tsx'
import { ErrorBlock } from '../../ui/error-block.tsx'
import { actualNetwork } from '../../ui/explorer.ts'
import { networkName } from '../../ui/format.ts'
import { Sheet } from '../../ui/overlay.tsx'
import { QrCode } from '../../ui/qr-code.tsx'
import { CopyButton } from '../../ui/values.tsx'
import type { AnyWallet } from './queries.ts'

type Receiver = Pick<AnyWallet, 'id' | 'address' | 'chain' | 'supportedTokens'>

/** The details for a sender of money: the address, as text and as a code, and the only network on which it counts. */
export function ReceiveSheet({ wallet, onClose }: { wallet: Receiver; onClose: () => void }) {
  const { environment } = useWorkspace()
  const network = networkName(actualNetwork(wallet.chain, environment))
  return (
    <Sheet open onClose={onClose} title="Receive money" footer={<Button onClick={onClose}>Close</Button>}>
      <div className="flex flex-col items-center gap-5">
        <QrCode text={wallet.address} label={`QR code of ${wallet.address}`} />
        <div className="flex w-full items-center gap-2 rounded-control border border-line bg-well px-2.5 py-2">
          <code className="min-w-0 flex-1 font-mono text-sm break-all">{wallet.address}</code>
          <CopyButton value={wallet.address} label="Copy the address" />
        </div>
        <p className="flex w-full gap-2 rounded-control bg-held-soft p-3 text-ink">
          <TriangleAlert className="mt-0.5 size-4 shrink-0 text-held" aria-hidden />
          <span>
            Send only {wallet.supportedTokens.join(', ')} on <strong className="font-medium">{network}</strong>. What is
            sent on another network does not arrive here.
            {environment === 'test' && ' This is a test network: real money sent to it is lost.'}
          </span>
        </p>
        {environment === 'test' && <TestDeposit wallet={wallet} />}
      </div>
    </Sheet>
  )
}

const testAmount = '25'

function TestDeposit({ wallet }: { wallet: Receiver }) {
  const { purser } = useWorkspace()
  const mayPay = useMay('member')
  const token = wallet.supportedTokens[0]
  const deposit = useMutation({
    mutationFn: () => purser.test.deposits.create({ walletId: wallet.id, token: token ?? '', amount: testAmount }),
  })
  if (!mayPay || token === undefined) return null
  return (
    <div className="flex w-full flex-col gap-3">
      <Button tone="primary" className="self-center" busy={deposit.isPending} onClick={() => deposit.mutate()}>
        <FlaskConical aria-hidden /> Deposit {testAmount} {token} of test money
      </Button>
      {deposit.data !== undefined && (
        <p role="status" className="text-center text-ink-2">
          The faucet sends {testAmount} {token}. The deposit appears on this page when its block is final.
        </p>
      )}
      {deposit.error !== null && <ErrorBlock error={deposit.error} />}
    </div>
  )
}
