import type { Page } from '@purser/sdk'
import { useInfiniteQuery } from '@tanstack/react-query'
import { useCallback, useMemo } from 'react'

const pageSize = 100

export interface PageRequest {
  readonly limit: number
  readonly cursor?: string
}

/** The rows of a list that were read so far, and how to read more. */
export interface ListingState<Row> {
  readonly rows: readonly Row[]
  readonly isPending: boolean
  readonly error: unknown
  readonly hasMore: boolean
  readonly more: () => void
  readonly retry: () => void
}

/** Reads a list of the API page after page, 100 rows at a time. */
export function useListing<Row>(
  queryKey: readonly unknown[],
  readPage: (query: PageRequest, options: { readonly signal: AbortSignal }) => Promise<Page<Row>>,
): ListingState<Row> {
  const list = useInfiniteQuery({
    queryKey,
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam, signal }) =>
      readPage({ limit: pageSize, ...(pageParam !== undefined && { cursor: pageParam }) }, { signal }),
    getNextPageParam: ({ cursor }) => cursor,
  })
  const rows = useMemo(() => list.data?.pages.flatMap(({ items }) => items) ?? [], [list.data])
  const { fetchNextPage, hasNextPage, isFetchingNextPage, refetch } = list
  const more = useCallback(() => {
    if (hasNextPage && !isFetchingNextPage) void fetchNextPage()
  }, [fetchNextPage, hasNextPage, isFetchingNextPage])
  const retry = useCallback(() => void refetch(), [refetch])
  return { rows, isPending: list.isPending, error: list.error, hasMore: hasNextPage, more, retry }
}
