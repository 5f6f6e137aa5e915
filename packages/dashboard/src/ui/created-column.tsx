import type { Column } from './table.tsx'
import { Time } from './values.tsx'

/** The column of a list that shows when its record was created, under the heading that fits the record. */
export function createdColumn(
  head = 'Created',
  from?: Column<unknown>['from'],
): Column<{ readonly createdAt: string }> {
  return {
    id: 'created',
    head,
    align: 'right',
    width: 'w-32',
    ...(from === undefined ? {} : { from }),
    cell: ({ createdAt }) => (
      <span className="text-ink-2">
        <Time at={createdAt} />
      </span>
    ),
  }
}
