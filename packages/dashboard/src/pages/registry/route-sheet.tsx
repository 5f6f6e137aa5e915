import type { RegistryRoute } from '@purser/sdk'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { useMay, usePurser } from '../../api/context.ts'
import { Button } from '../../ui/button.tsx'
import { ErrorBlock } from '../../ui/error-block.tsx'
import { count } from '../../ui/format.ts'
import { Dialog } from '../../ui/overlay.tsx'
import { Fact, Facts, Skeleton } from '../../ui/page.tsx'
import { RecordSheet } from '../../ui/record-sheet.tsx'
import { Tag } from '../../ui/state.tsx'
import { toastDone } from '../../ui/toast.tsx'
import { Amount, CopyButton, Id, Time } from '../../ui/values.tsx'
import { Protocols, Visibility } from './columns.tsx'

/** One route: its price, its demand, how it is called, and whether it is public. */
export function RouteSheet({ id, onClose }: { id: string | undefined; onClose: () => void }) {
  return (
    <RecordSheet title="Route" open={id !== undefined} onClose={onClose}>
      {id !== undefined && <RouteDetail id={id} />}
    </RecordSheet>
  )
}

function RouteDetail({ id }: { id: string }) {
  const purser = usePurser()
  const found = useQuery({
    queryKey: ['registry', 'one', id],
    queryFn: ({ signal }) => purser.registry.routes.get(id, { signal }),
  })
  if (found.data === undefined)
    return found.error === null ? (
      <Skeleton lines={7} />
    ) : (
      <ErrorBlock error={found.error} onRetry={() => found.refetch()} />
    )
  const { data } = found
  const address = `https://${data.host}${data.routePattern}`
  return (
    <div className="flex flex-col gap-6">
      <header>
        <p className="text-2xl font-semibold tracking-tight">
          <Amount value={data.amount} token="USD" /> <span className="text-base font-normal text-ink-2">a call</span>
        </p>
        <p className="mt-1 font-mono text-sm break-all">
          {data.method} {address} <CopyButton value={address} />
        </p>
        <p className="mt-1 text-ink-2">Reported to the registry {count(data.snapshotCount, 'time')} so far.</p>
      </header>
      <Facts>
        <Fact name="Protocols">
          <Protocols row={data} />
        </Fact>
        <Fact name="Listed">
          <Visibility row={data} /> <VisibilityButton row={data} />
        </Fact>
        <Fact name="Route">
          <Id value={data.id} />
        </Fact>
        <Fact name="First reported">
          <Time at={data.createdAt} full />
        </Fact>
        <Fact name="Last reported">
          <Time at={data.lastSeenAt} full />
        </Fact>
        {data.bodyContentType !== null && <Fact name="Body">{data.bodyContentType}</Fact>}
      </Facts>
      <Params title="Query parameters" params={data.queryParams} />
      <Params title="Body fields" params={data.bodyParams} />
      <Params title="Headers" params={data.headers} />
    </div>
  )
}

function Params({ title, params }: { title: string; params: RegistryRoute['headers'] }) {
  if (params.length === 0) return null
  return (
    <section>
      <h3 className="mb-1.5 font-medium">{title}</h3>
      <ul className="rounded-card border border-line">
        {params.map(({ name, type, required, example }) => (
          <li
            key={name}
            className="flex flex-wrap items-center gap-x-3 gap-y-1 border-b border-line px-3 py-2 last:border-b-0"
          >
            <span className="font-mono text-sm break-all">{name}</span>
            <Tag>{type}</Tag>
            <span className="text-sm text-ink-2">{required ? 'required' : 'optional'}</span>
            {example !== undefined && (
              <span className="ml-auto font-mono text-sm break-all text-ink-2">{String(example)}</span>
            )}
          </li>
        ))}
      </ul>
    </section>
  )
}

/** Makes a route public or private, after a confirmation. */
function VisibilityButton({ row }: { row: RegistryRoute }) {
  const purser = usePurser()
  const queries = useQueryClient()
  const mayChange = useMay('admin')
  const [isAsking, setAsking] = useState(false)
  const next = !row.isPublic
  const act = next ? 'List it publicly' : 'Make it private'
  const change = useMutation({
    mutationFn: () => purser.registry.routes.update(row.id, { isPublic: next }),
    onSuccess: () => {
      toastDone(next ? 'The route is public' : 'The route is private')
      void queries.invalidateQueries({ queryKey: ['registry'] })
      setAsking(false)
    },
  })
  if (!mayChange) return null
  return (
    <>
      <Button small onClick={() => setAsking(true)}>
        {act}
      </Button>
      <Dialog
        open={isAsking}
        onClose={() => setAsking(false)}
        title={act}
        footer={
          <>
            <Button onClick={() => setAsking(false)}>Cancel</Button>
            <Button tone="primary" busy={change.isPending} onClick={() => change.mutate()}>
              {act}
            </Button>
          </>
        }
      >
        <p className="text-ink-2">
          {next
            ? 'Every organisation can then find its address, its price and the names of its parameters.'
            : 'Only this organisation sees it. Payments for it continue.'}
        </p>
        {change.error !== null && <ErrorBlock error={change.error} />}
      </Dialog>
    </>
  )
}
