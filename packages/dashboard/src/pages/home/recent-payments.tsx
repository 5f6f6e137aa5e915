import type { PaymentLog } from '@purser/sdk'
import { useInfiniteQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useMemo } from 'react'
import { usePurser } from '../../api/context.ts'
import { ErrorBlock } from '../../ui/error-block.tsx'
import { DataTable } from '../../ui/table.tsx'
import { TableSkeleton } from '../../ui/table-parts.tsx'
import { CompactPayment, paymentColumns } from '../payments/columns.tsx'
import { NoPayments } from '../payments/no-payments.tsx'
import { paymentsQuery } from '../payments/queries.ts'
import { staleRows, useLivePayments } from '../payments/use-live-payments.ts'

const rowsShown = 8
const filters = {}
const columns = paymentColumns.filter(({ id }) => id !== 'id' && id !== 'chain')

/** The newest payments, updated live. */
export function RecentPayments() {
  const purser = usePurser()
  const navigate = useNavigate()
  const options = useMemo(() => paymentsQuery(purser, filters), [purser])
  const list = useInfiniteQuery(options)
  const { arrived, isStale } = useLivePayments(options.queryKey, filters, 'always')
  if (list.error !== null)
    return (
      <div className="p-4">
        <ErrorBlock error={list.error} onRetry={() => list.refetch()} />
      </div>
    )
  if (list.isPending) return <TableSkeleton rows={rowsShown} />
  const rows = list.data.pages.flatMap(({ items }) => items).slice(0, rowsShown)
  if (rows.length === 0) return <NoPayments isFiltered={false} />
  return (
    <>
      {isStale && <p className="px-4 py-2 text-sm text-ink-2">{staleRows}</p>}
      <DataTable
        label="Newest payments"
        columns={columns}
        rows={rows}
        rowKey={rowKey}
        compact={compact}
        arrivedKeys={arrived}
        onOpen={({ paymentId }) => void navigate({ to: '/payments/$paymentId', params: { paymentId } })}
      />
    </>
  )
}

const rowKey = ({ id }: PaymentLog) => id
const compact = (row: PaymentLog) => <CompactPayment row={row} />
