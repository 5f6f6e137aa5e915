import type { Column } from './table.tsx'
import { Time } from './values.tsx'

/** The column of a list that shows when its record was created. */
export const createdColumn: Column<{ readonly createdAt: string }> = {
  id: 'created',
  head: 'Created',
  align: 'right',
  width: 'w-32',
  cell: ({ createdAt }) => (
    <span className="text-ink-2">
      <Time at={createdAt} />
    </span>
  ),
}
