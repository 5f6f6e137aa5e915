import type { Withdrawal } from '@purser/sdk'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { Landmark, Plus } from 'lucide-react'
import { useCallback, useState } from 'react'
import { useMay, usePurser } from '../../api/context.ts'
import { useListing } from '../../api/listing.ts'
import { useRefreshOn } from '../../live/use-live.ts'
import { Button } from '../../ui/button.tsx'
import { movementWords, shownCount } from '../../ui/format.ts'
import { ListCard } from '../../ui/list-card.tsx'
import { Empty, Page } from '../../ui/page.tsx'
import { RecordSheet } from '../../ui/record-sheet.tsx'
import { CompactWithdrawal, withdrawalColumns } from './columns.tsx'
import { NewWithdrawalSheet } from './new-withdrawal.tsx'
import { WithdrawalDetail } from './withdrawal-detail.tsx'

const route = getRouteApi('/shell/withdrawals')

/** All withdrawals to banks, newest first. */
export function WithdrawalsPage() {
  const purser = usePurser()
  const navigate = useNavigate()
  const { open } = route.useSearch()
  const maySend = useMay('member')
  const [isCreating, setCreating] = useState(false)
  const listing = useListing(['withdrawals', 'list'], (query, options) =>
    purser.withdrawals.list(query, options).page(),
  )
  useRefreshOn(['withdrawal.'], ['withdrawals'])
  const show = useCallback(
    (id: string | undefined) =>
      void navigate({ to: '/withdrawals', search: id === undefined ? {} : { open: id }, resetScroll: false }),
    [navigate],
  )
  const openRow = useCallback(({ id }: Withdrawal) => show(id), [show])
  const action = maySend && (
    <Button tone="primary" onClick={() => setCreating(true)}>
      <Plus aria-hidden /> Withdraw to a bank
    </Button>
  )
  return (
    <Page title="Withdrawals" state={summaryOf(listing)} action={action} wide>
      <ListCard
        label="Withdrawals"
        listing={listing}
        columns={withdrawalColumns}
        rowKey={rowKey}
        compact={compact}
        onOpen={openRow}
        openKey={open}
        empty={
          <Empty icon={<Landmark />} title="No withdrawals yet" action={action}>
            A withdrawal converts tokens of a managed wallet and pays them to a bank account.
          </Empty>
        }
      />
      <RecordSheet
        title="Withdrawal"
        open={open !== undefined}
        onClose={() => show(undefined)}
        page={open === undefined ? undefined : `/withdrawals/${open}`}
      >
        {open !== undefined && <WithdrawalDetail withdrawalId={open} />}
      </RecordSheet>
      {isCreating && <NewWithdrawalSheet onClose={() => setCreating(false)} onCreated={show} />}
    </Page>
  )
}

const rowKey = ({ id }: Withdrawal) => id
const compact = (row: Withdrawal) => <CompactWithdrawal row={row} />

function summaryOf({ rows, hasMore }: { readonly rows: readonly Withdrawal[]; readonly hasMore: boolean }): string {
  if (rows.length === 0) return 'Tokens paid out to bank accounts.'
  const waiting = rows.filter(({ approval }) => approval?.status === 'waiting').length
  return movementWords(shownCount(rows.length, 'withdrawal', { hasMore }), {
    waiting,
    open: rows.filter(({ status }) => status !== 'completed' && status !== 'failed').length - waiting,
    failed: rows.filter(({ status }) => status === 'failed').length,
  })
}
