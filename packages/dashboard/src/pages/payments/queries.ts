import type { Page, PaymentLog, Purser } from '@purser/sdk'
import { type InfiniteData, infiniteQueryOptions, queryOptions } from '@tanstack/react-query'
import { rangeStart } from '../../ui/range.ts'
import type { PaymentsSearch } from './search.ts'

const pageSize = 100

export type PaymentPages = InfiniteData<Page<PaymentLog>, string | undefined>

export const paymentsKey = ['payments'] as const

/** The filters as query parameters of the API. The range starts at the time of the first request of the list. */
export function filtersOf(
  { protocol, route, walletId, batchId, range, status, chain, payer, apiKeyId }: PaymentsSearch,
  now: Date,
) {
  return {
    ...(status !== undefined && { status }),
    ...(chain !== undefined && { chain }),
    ...(payer !== undefined && { payer }),
    ...(apiKeyId !== undefined && { apiKeyId }),
    ...(protocol !== undefined && { protocol }),
    ...(route !== undefined && { route }),
    ...(walletId !== undefined && { walletId }),
    ...(batchId !== undefined && { batchId }),
    ...(range !== undefined && { from: rangeStart(range, now).toISOString() }),
  }
}

type Filters = ReturnType<typeof filtersOf>

/** Payments, newest first, page after page. */
export function paymentsQuery(purser: Purser, filters: Filters) {
  return infiniteQueryOptions({
    queryKey: [...paymentsKey, 'list', filters],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam, signal }) => firstPage(purser, filters, pageParam, signal),
    getNextPageParam: ({ cursor }) => cursor,
    // Never stale: changes arrive over the event stream.
    staleTime: Number.POSITIVE_INFINITY,
  })
}

export function firstPage(
  purser: Purser,
  filters: Filters,
  cursor?: string,
  signal?: AbortSignal,
): Promise<Page<PaymentLog>> {
  return purser.payments.logs
    .list({ ...filters, limit: pageSize, ...(cursor !== undefined && { cursor }) }, { signal })
    .page()
}

export function paymentQuery(purser: Purser, paymentId: string) {
  return queryOptions({
    queryKey: [...paymentsKey, 'one', paymentId],
    queryFn: ({ signal }) => purser.payments.get(paymentId, { signal }),
  })
}

/**
 * Replaces the beginning of a longer list by a newer first page, down to the last row that both have. If they share no row, more rows
 * came than fit on one page, and the result is that page alone. In a list of one status, rows that have another one by now are left out.
 */
export function mergeFirstPage(
  old: PaymentPages,
  first: Page<PaymentLog>,
  status: PaymentLog['status'] | undefined,
): PaymentPages {
  const rows = old.pages.flatMap(({ items }) => items)
  const read = new Set(first.items.map(({ id }) => id))
  const last = rows.findLastIndex(({ id }) => read.has(id))
  const isWhole = status !== undefined && first.cursor === undefined
  if (last < 0 || isWhole) return { pages: [first], pageParams: [undefined] }
  const older = new Set(rows.slice(last + 1).filter((row) => status === undefined || row.status === status))
  const pages = old.pages.map(({ items, cursor }, index) => ({
    items: [...(index === 0 ? first.items : []), ...items.filter((row) => older.has(row))],
    cursor,
  }))
  return { ...old, pages }
}

/** Replaces the row of a payment whose status has changed, anywhere in the list. */
export function withStatuses(old: PaymentPages, statuses: ReadonlyMap<string, Partial<PaymentLog>>): PaymentPages {
  const pages = old.pages.map((page) => {
    if (!page.items.some(({ paymentId }) => statuses.has(paymentId))) return page
    return { ...page, items: page.items.map((row) => ({ ...row, ...statuses.get(row.paymentId) })) }
  })
  return { ...old, pages }
}
