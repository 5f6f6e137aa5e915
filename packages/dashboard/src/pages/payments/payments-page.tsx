import type { PaymentLog } from '@purser/sdk'
import { useInfiniteQuery, useQueryClient } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { useCallback, useMemo } from 'react'
import { usePurser } from '../../api/context.ts'
import { ErrorBlock } from '../../ui/error-block.tsx'
import { shownCount } from '../../ui/format.ts'
import { Page } from '../../ui/page.tsx'
import { DataTable } from '../../ui/table.tsx'
import { NewRowsPill, TableSkeleton } from '../../ui/table-parts.tsx'
import { CompactPayment, paymentColumns } from './columns.tsx'
import { NoPayments } from './no-payments.tsx'
import { PaymentSheet } from './payment-sheet.tsx'
import { PaymentsFilters } from './payments-filters.tsx'
import { filtersOf, paymentQuery, paymentsQuery } from './queries.ts'
import { type PaymentsSearch, readPaymentsSearch } from './search.ts'
import { staleRows, useLivePayments } from './use-live-payments.ts'

const route = getRouteApi('/shell/payments')

/** All payments, newest first, updated live. A payment opens in a sheet with its own URL. */
export function PaymentsPage() {
  const purser = usePurser()
  const queries = useQueryClient()
  const navigate = useNavigate()
  const search = route.useSearch()
  const filterWords = JSON.stringify({ ...search, open: undefined })
  const filters = useMemo(() => filtersOf(JSON.parse(filterWords) as PaymentsSearch, new Date()), [filterWords])
  const options = useMemo(() => paymentsQuery(purser, filters), [purser, filters])
  const list = useInfiniteQuery(options)
  const rows = useMemo(() => list.data?.pages.flatMap(({ items }) => items) ?? [], [list.data])
  const live = useLivePayments(options.queryKey, filters)
  const isFiltered = Object.keys(filters).length > 0
  const open = useCallback(
    ({ paymentId }: PaymentLog) => {
      void navigate({
        to: '/payments',
        search: (old) => ({ ...readPaymentsSearch(old), open: paymentId }),
        mask: { to: '/payments/$paymentId', params: { paymentId }, unmaskOnReload: true },
        resetScroll: false,
      })
    },
    [navigate],
  )
  const prefetch = useCallback(
    ({ paymentId }: PaymentLog) => void queries.prefetchQuery(paymentQuery(purser, paymentId)),
    [purser, queries],
  )
  const { fetchNextPage, isFetchingNextPage } = list
  const more = useCallback(() => {
    if (!isFetchingNextPage) void fetchNextPage()
  }, [fetchNextPage, isFetchingNextPage])
  const close = () => void navigate({ to: '/payments', search: closed, resetScroll: false })
  return (
    <Page
      title="Payments"
      state={live.isStale ? staleRows : summaryOf({ rows, hasMore: list.hasNextPage }, { isFiltered })}
      wide
    >
      <PaymentsFilters search={search} filters={filters} />
      <div className="relative overflow-clip rounded-card border border-line bg-surface">
        <NewRowsPill count={live.waiting} noun="payment" onShow={live.show} />
        {list.error !== null ? (
          <div className="p-4">
            <ErrorBlock error={list.error} onRetry={() => list.refetch()} />
          </div>
        ) : list.isPending ? (
          <TableSkeleton />
        ) : rows.length === 0 ? (
          <NoPayments isFiltered={isFiltered} />
        ) : (
          <DataTable
            label="Payments"
            columns={paymentColumns}
            rows={rows}
            rowKey={rowKey}
            compact={compact}
            onOpen={open}
            onHover={prefetch}
            openKey={rows.find(({ paymentId }) => paymentId === search.open)?.id}
            arrivedKeys={live.arrived}
            hasMore={list.hasNextPage}
            onMore={more}
          />
        )}
      </div>
      <PaymentSheet paymentId={search.open} onClose={close} />
    </Page>
  )
}

function closed(search: Readonly<Record<string, unknown>>): PaymentsSearch {
  const { open: _, ...rest } = readPaymentsSearch(search)
  return rest
}

const rowKey = ({ id }: PaymentLog) => id
const compact = (row: PaymentLog) => <CompactPayment row={row} />

function summaryOf(
  { rows, hasMore }: { readonly rows: readonly PaymentLog[]; readonly hasMore: boolean },
  { isFiltered }: { readonly isFiltered: boolean },
): string {
  if (rows.length === 0)
    return isFiltered ? 'No payments with these filters.' : 'Every payment that a payer signed for, as it happens.'
  const failed = rows.filter(({ status }) => status === 'settlement_failed').length
  const open = rows.filter(({ status }) => status === 'verified' || status === 'settling').length
  const shown = `${shownCount(rows.length, 'payment', { hasMore })}${isFiltered ? ' with these filters' : ''}`
  const parts = [
    open > 0 && `${open.toLocaleString('en-US')} on the way`,
    failed > 0 && `${failed.toLocaleString('en-US')} failed`,
  ]
  const outcomes = parts.filter(Boolean).join(', ')
  return outcomes === '' ? `${shown}, none failed.` : `${shown}: ${outcomes}.`
}
