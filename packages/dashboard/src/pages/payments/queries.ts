import type { Page, PaymentLog, Purser } from '@purser/sdk'
import { type InfiniteData, infiniteQueryOptions, queryOptions } from '@tanstack/react-query'
import { rangeStart } from '../../ui/range.ts'
import type { PaymentsSearch } from './search.ts'

const pageSize = 100

export type PaymentPages = InfiniteData<Page<PaymentLog>, string | undefined>

export const paymentsKey = ['payments'] as const

/** The filters as the API takes them; the range begins where it did when the list was first requested. */
export function filtersOf(
  { protocol, route, walletId, range, status, chain, payer, apiKeyId }: PaymentsSearch,
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
    // Changes arrive over the stream; a long list is never read again page by page.
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
 * Merges a newer first page into a longer list: known rows take its values, and new rows precede them. If it shares no row with the
 * list, more rows came than fit on one page, and the result is that page alone.
 */
export function mergeFirstPage(old: PaymentPages, first: Page<PaymentLog>): PaymentPages {
  const rows = old.pages.flatMap(({ items }) => items)
  const known = new Set(rows.map(({ id }) => id))
  if (rows.length > 0 && !first.items.some(({ id }) => known.has(id)))
    return { pages: [first], pageParams: [undefined] }
  const newer = new Map(first.items.map((row) => [row.id, row]))
  const fresh = first.items.filter(({ id }) => !known.has(id))
  const pages = old.pages.map(({ items, cursor }) => ({ items: items.map((row) => newer.get(row.id) ?? row), cursor }))
  const [head, ...rest] = pages
  return { ...old, pages: [{ items: [...fresh, ...(head?.items ?? [])], cursor: head?.cursor }, ...rest] }
}

/** Replaces the row of a payment whose status has changed, anywhere in the list. */
export function withStatuses(old: PaymentPages, statuses: ReadonlyMap<string, Partial<PaymentLog>>): PaymentPages {
  const pages = old.pages.map((page) => {
    if (!page.items.some(({ paymentId }) => statuses.has(paymentId))) return page
    return { ...page, items: page.items.map((row) => ({ ...row, ...statuses.get(row.paymentId) })) }
  })
  return { ...old, pages }
}
