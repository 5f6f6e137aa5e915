import { useQuery } from '@tanstack/react-query'
import { usePurser } from '../../api/context.ts'
import { ErrorBlock } from '../../ui/error-block.tsx'
import { duration } from '../../ui/format.ts'
import { Fact, Facts, Skeleton } from '../../ui/page.tsx'
import { RecordSheet } from '../../ui/record-sheet.tsx'
import { Id, Time } from '../../ui/values.tsx'
import { RequestCaller, Status } from './columns.tsx'

/** One request: what was called, by whom, and how it ended. */
export function RequestSheet({ id, onClose }: { id: string | undefined; onClose: () => void }) {
  return (
    <RecordSheet title="Request" open={id !== undefined} onClose={onClose}>
      {id !== undefined && <RequestDetail id={id} />}
    </RecordSheet>
  )
}

function RequestDetail({ id }: { id: string }) {
  const purser = usePurser()
  const found = useQuery({
    queryKey: ['requests', 'one', id],
    queryFn: ({ signal }) => purser.requests.get(id, { signal }),
  })
  if (found.data === undefined)
    return found.error === null ? (
      <Skeleton lines={6} />
    ) : (
      <ErrorBlock error={found.error} onRetry={() => found.refetch()} />
    )
  const { data } = found
  return (
    <div className="flex flex-col gap-6">
      <header className="flex flex-col items-start gap-2">
        <Status status={data.status} />
        <p className="font-mono text-sm break-all">
          {data.method} {data.route}
        </p>
      </header>
      <Facts>
        {data.code !== null && (
          <Fact name="Problem">
            <span className="font-mono text-sm">{data.code}</span>
          </Fact>
        )}
        <Fact name="Request">
          <Id value={data.id} />
        </Fact>
        <Fact name="Caller">
          <RequestCaller row={data} />
        </Fact>
        <Fact name="Duration">{duration(data.durationMs)}</Fact>
        <Fact name="Received">
          <Time at={data.createdAt} full />
        </Fact>
      </Facts>
      <p className="text-sm text-ink-2">Bodies, queries and header fields are not stored.</p>
    </div>
  )
}
