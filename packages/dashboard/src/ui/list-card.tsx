import type { ReactNode } from 'react'
import type { ListingState } from '../api/listing.ts'
import { ErrorBlock } from './error-block.tsx'
import { DataTable, type DataTableProps } from './table.tsx'
import { TableSkeleton } from './table-parts.tsx'

type ListCardProps<Row> = Omit<DataTableProps<Row>, 'rows' | 'hasMore' | 'onMore'> & {
  readonly listing: ListingState<Row>
  /** Takes the place of the table where there are no rows. */
  readonly empty: ReactNode
}

/** A list of the API as a table, with a skeleton while it loads, its error, and a text if it is empty. */
export function ListCard<Row>({ listing, empty, ...table }: ListCardProps<Row>) {
  const { rows, isPending, error, hasMore, more, retry } = listing
  return (
    <div className="overflow-clip rounded-card border border-line bg-surface">
      {error !== null ? (
        <div className="p-4">
          <ErrorBlock error={error} onRetry={retry} />
        </div>
      ) : isPending ? (
        <TableSkeleton />
      ) : rows.length === 0 ? (
        empty
      ) : (
        <DataTable {...table} rows={rows} hasMore={hasMore} onMore={more} />
      )}
    </div>
  )
}
