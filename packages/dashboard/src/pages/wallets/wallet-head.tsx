import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { Archive, ArchiveRestore, ArrowUpRight, MoreHorizontal, Pencil, QrCode as QrIcon, Trash2 } from 'lucide-react'
import { useState } from 'react'
import { useMay, usePurser } from '../../api/context.ts'
import { ActionDialog } from '../../ui/action-dialog.tsx'
import { Button } from '../../ui/button.tsx'
import { Menu } from '../../ui/menu.tsx'
import { toastDone } from '../../ui/toast.tsx'
import { NewTransferSheet } from '../transfers/new-transfer.tsx'
import { type AnyWallet, isManaged, walletsKey } from './queries.ts'
import { ReceiveSheet } from './receive-sheet.tsx'
import { RenameDialog } from './rename-dialog.tsx'
import { standingOf, WalletBadge, walletName } from './wallet-state.tsx'

type Open = 'receive' | 'send' | 'rename' | 'end' | 'restore' | undefined

export function WalletHead({ wallet }: { wallet: AnyWallet }) {
  const mayChange = useMay('member')
  const purser = usePurser()
  const navigate = useNavigate()
  const [open, setOpen] = useState<Open>()
  const close = () => setOpen(undefined)
  const isRetired = isManaged(wallet) && wallet.provisionStatus === 'retired'
  const end = isManaged(wallet)
    ? { label: 'Retire this wallet', icon: <Archive />, onChoose: () => setOpen('end') }
    : { label: 'Remove this wallet', icon: <Trash2 />, onChoose: () => setOpen('end') }
  return (
    <header className="flex flex-wrap items-start justify-between gap-x-6 gap-y-3">
      <div className="flex min-w-0 flex-col gap-1">
        <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
          <h1 className="min-w-0 text-xl font-semibold tracking-tight break-words">{walletName(wallet)}</h1>
          <WalletBadge wallet={wallet} />
        </div>
        <p className="text-ink-2">{standingOf(wallet).sentence}</p>
      </div>
      <div className="flex flex-wrap gap-2">
        {isRetired ? (
          mayChange && (
            <Button tone="primary" onClick={() => setOpen('restore')}>
              <ArchiveRestore aria-hidden /> Restore
            </Button>
          )
        ) : (
          <Button tone="primary" onClick={() => setOpen('receive')}>
            <QrIcon aria-hidden /> Receive
          </Button>
        )}
        {mayChange && isManaged(wallet) && !isRetired && (
          <Button onClick={() => setOpen('send')}>
            <ArrowUpRight aria-hidden /> Send
          </Button>
        )}
        {mayChange && (
          <Menu
            trigger={
              <Button aria-label="More actions">
                <MoreHorizontal aria-hidden />
              </Button>
            }
            groups={[
              {
                items: [
                  { label: 'Rename', icon: <Pencil />, onChoose: () => setOpen('rename') },
                  ...(isRetired ? [] : [end]),
                ],
              },
            ]}
          />
        )}
      </div>
      {open === 'receive' && <ReceiveSheet wallet={wallet} onClose={close} />}
      {open === 'send' && isManaged(wallet) && (
        <NewTransferSheet
          from={wallet}
          onClose={close}
          onSent={(transferId) => void navigate({ to: '/transfers/$transferId', params: { transferId } })}
        />
      )}
      {open === 'rename' && (
        <RenameDialog
          what="wallet"
          name={wallet.name}
          onSave={(name): Promise<unknown> =>
            isManaged(wallet)
              ? purser.wallets.master.update(wallet.id, { name })
              : purser.wallets.byo.update(wallet.id, { name })
          }
          onClose={close}
        />
      )}
      {open === 'end' && <EndDialog wallet={wallet} onClose={close} />}
      {open === 'restore' && <RestoreDialog wallet={wallet} onClose={close} />}
    </header>
  )
}

interface DialogProps {
  readonly wallet: AnyWallet
  readonly onClose: () => void
}

/** Retires or removes a wallet, after a confirmation. */
function EndDialog({ wallet, onClose }: DialogProps) {
  const purser = usePurser()
  const queries = useQueryClient()
  const navigate = useNavigate()
  const managed = isManaged(wallet)
  const end = useMutation({
    mutationFn: () => (managed ? purser.wallets.master.retire(wallet.id) : purser.wallets.byo.delete(wallet.id)),
    onSuccess: () => {
      toastDone(managed ? 'The wallet is retired' : 'The wallet is removed')
      if (!managed) void navigate({ to: '/wallets', search: { kind: 'own' } })
      void queries.invalidateQueries({ queryKey: walletsKey, refetchType: managed ? 'active' : 'none' })
      onClose()
    },
  })
  return (
    <ActionDialog
      title={managed ? 'Retire this wallet' : 'Remove this wallet'}
      act={
        <>
          {managed ? 'Retire' : 'Remove'} {walletName(wallet).slice(0, 24)}
        </>
      }
      keep="Keep it"
      tone="danger"
      action={end}
      onClose={onClose}
    >
      <p className="text-ink-2">
        {managed
          ? 'It takes no payments and sends nothing. Its addresses stay watched, and it can be restored. A wallet with money that is not frozen cannot be retired.'
          : 'The service stops watching its address, and payments to it are refused. Its money stays where it is.'}
      </p>
    </ActionDialog>
  )
}

function RestoreDialog({ wallet, onClose }: DialogProps) {
  const purser = usePurser()
  const queries = useQueryClient()
  const restore = useMutation({
    mutationFn: () => purser.wallets.master.restore(wallet.id),
    onSuccess: () => {
      toastDone('The wallet is active again')
      void queries.invalidateQueries({ queryKey: walletsKey })
      onClose()
    },
  })
  return (
    <ActionDialog
      title="Restore this wallet"
      act="Restore the wallet"
      keep="Leave it retired"
      tone="primary"
      action={restore}
      onClose={onClose}
    >
      <p className="text-ink-2">
        It takes payments again, and money may leave it under its policy. It counts toward the plan.
      </p>
    </ActionDialog>
  )
}
