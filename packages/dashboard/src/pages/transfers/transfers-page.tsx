import type { Transfer } from '@purser/sdk'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { ArrowLeftRight, Plus } from 'lucide-react'
import { useCallback, useState } from 'react'
import { useMay, usePurser } from '../../api/context.ts'
import { useListing } from '../../api/listing.ts'
import { useRefreshOn } from '../../live/use-live.ts'
import { Button } from '../../ui/button.tsx'
import { ChoiceFilter } from '../../ui/choice-filter.tsx'
import { movementWords, shownCount } from '../../ui/format.ts'
import { ListCard } from '../../ui/list-card.tsx'
import { Empty, Page } from '../../ui/page.tsx'
import { RecordSheet } from '../../ui/record-sheet.tsx'
import { CompactTransfer, transferColumns } from './columns.tsx'
import { NewTransferSheet } from './new-transfer.tsx'
import { TransferDetail } from './transfer-detail.tsx'
import { isWaiting } from './transfer-state.tsx'
import { useManagedWallets, walletLabel } from './wallets.ts'

const route = getRouteApi('/shell/transfers')

/** All transfers out of managed wallets, newest first. */
export function TransfersPage() {
  const purser = usePurser()
  const navigate = useNavigate()
  const { open, fromWalletId } = route.useSearch()
  const wallets = useManagedWallets()
  const maySend = useMay('member')
  const [isSending, setSending] = useState(false)
  const listing = useListing(['transfers', 'list', fromWalletId ?? 'any'], (query, options) =>
    purser.transfers.list({ ...query, ...(fromWalletId !== undefined && { fromWalletId }) }, options).page(),
  )
  useRefreshOn(['transfer.'], ['transfers'])
  const show = useCallback(
    (id: string | undefined) =>
      void navigate({
        to: '/transfers',
        search: ({ open: _, ...rest }) => ({ ...rest, ...(id !== undefined && { open: id }) }),
        resetScroll: false,
      }),
    [navigate],
  )
  const openRow = useCallback(({ id }: Transfer) => show(id), [show])
  const send = maySend && (
    <Button tone="primary" onClick={() => setSending(true)}>
      <Plus aria-hidden /> Send money
    </Button>
  )
  return (
    <Page title="Transfers" state={summaryOf(listing)} action={send} wide>
      <div className="mb-3">
        <ChoiceFilter
          label="From wallet"
          any="Any wallet"
          className="max-w-72"
          choices={(wallets.data ?? []).map((wallet) => ({ id: wallet.id, name: walletLabel(wallet) }))}
          value={fromWalletId}
          onSet={(id) =>
            void navigate({ to: '/transfers', search: id === '' ? {} : { fromWalletId: id }, replace: true })
          }
        />
      </div>
      <ListCard
        label="Transfers"
        listing={listing}
        columns={transferColumns}
        rowKey={rowKey}
        compact={compact}
        onOpen={openRow}
        openKey={open}
        empty={
          <Empty icon={<ArrowLeftRight />} title="No transfers yet" action={send}>
            A transfer sends money from a managed wallet to any address, on any supported network.
          </Empty>
        }
      />
      <RecordSheet
        title="Transfer"
        open={open !== undefined}
        onClose={() => show(undefined)}
        page={open === undefined ? undefined : `/transfers/${open}`}
      >
        {open !== undefined && <TransferDetail transferId={open} />}
      </RecordSheet>
      {isSending && <NewTransferSheet onClose={() => setSending(false)} onSent={show} />}
    </Page>
  )
}

const rowKey = ({ id }: Transfer) => id
const compact = (row: Transfer) => <CompactTransfer row={row} />

function summaryOf({ rows, hasMore }: { readonly rows: readonly Transfer[]; readonly hasMore: boolean }): string {
  if (rows.length === 0) return 'Money that leaves your managed wallets.'
  const waiting = rows.filter(({ approval }) => isWaiting(approval)).length
  return movementWords(shownCount(rows.length, 'transfer', { hasMore }), {
    waiting,
    open: rows.filter(({ status }) => status === 'pending').length - waiting,
    failed: rows.filter(({ status }) => status === 'failed').length,
  })
}
