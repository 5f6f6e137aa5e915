import type { EventQuery, RecordedEvent } from '@purser/sdk'
import { useMutation, useQuery } from '@tanstack/react-query'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import { RotateCw, Zap } from 'lucide-react'
import { useCallback } from 'react'
import { useMay, usePurser } from '../../api/context.ts'
import { useListing } from '../../api/listing.ts'
import { useRefreshOn } from '../../live/use-live.ts'
import { Button, buttonClasses } from '../../ui/button.tsx'
import { CodeBlock } from '../../ui/code-block.tsx'
import { createdColumn } from '../../ui/created-column.tsx'
import { ErrorBlock } from '../../ui/error-block.tsx'
import { Select } from '../../ui/form.tsx'
import { ListCard } from '../../ui/list-card.tsx'
import { Empty, Fact, Facts, Skeleton } from '../../ui/page.tsx'
import { RecordSheet } from '../../ui/record-sheet.tsx'
import type { Column } from '../../ui/table.tsx'
import { toastDone } from '../../ui/toast.tsx'
import { Id, Time } from '../../ui/values.tsx'
import { eventQuery, eventsKey, eventTypesQuery } from './queries.ts'

const route = getRouteApi('/shell/events')

/** The events of the last 30 days, newest first; one opens in a sheet with its payload. */
export function RecentEvents() {
  const purser = usePurser()
  const navigate = useNavigate()
  const { open, type } = route.useSearch()
  const types = useQuery(eventTypesQuery(purser))
  const known = types.data?.find((one) => one.type === type)?.type as EventQuery['type']
  const listing = useListing([...eventsKey, 'list', known ?? 'any'], (query, options) =>
    purser.events.list({ ...query, ...(known !== undefined && { type: known }) }, options).page(),
  )
  useRefreshOn(types.data?.map((one) => one.type) ?? [], [...eventsKey, 'list'])
  const show = useCallback(
    (id: string | undefined) =>
      void navigate({
        to: '/events',
        search: { ...(type !== undefined && { type }), ...(id !== undefined && { open: id }) },
        resetScroll: false,
      }),
    [navigate, type],
  )
  const openRow = useCallback(({ id }: RecordedEvent) => show(id), [show])
  const choose = (next: string) =>
    void navigate({ to: '/events', search: next === '' ? {} : { type: next }, replace: true })
  return (
    <>
      <div className="mb-3">
        <Select
          aria-label="Type"
          className="max-w-72"
          value={known ?? ''}
          onChange={({ target }) => choose(target.value)}
        >
          <option value="">Any type</option>
          {types.data?.map((one) => (
            <option key={one.type}>{one.type}</option>
          ))}
        </Select>
      </div>
      <ListCard
        label="Events"
        listing={listing}
        columns={columns}
        rowKey={rowKey}
        compact={compact}
        onOpen={openRow}
        openKey={open}
        empty={
          <Empty
            icon={<Zap />}
            title={known === undefined ? 'No events yet' : 'No event of this type in 30 days'}
            action={
              <Link to="/events" search={{ view: 'types' }} className={buttonClasses('primary')}>
                See the catalogue
              </Link>
            }
          >
            Payments, deposits, transfers and vaults send an event for each change.
          </Empty>
        }
      />
      <EventSheet eventId={open} onClose={() => show(undefined)} />
    </>
  )
}

const rowKey = ({ id }: RecordedEvent) => id

const columns: readonly Column<RecordedEvent>[] = [
  { id: 'type', head: 'Type', width: 'w-64', cell: ({ type }) => <span className="font-mono text-sm">{type}</span> },
  { id: 'about', head: 'About', cell: (row) => <About row={row} /> },
  { id: 'id', head: 'Event', width: 'w-39', from: 'lg', cell: ({ id }) => <Id value={id} /> },
  createdColumn('Happened'),
]

/** The subject of the event: the id that its type names, otherwise the first id in the payload. */
function About({ row: { type, payload } }: { row: RecordedEvent }) {
  const named = payload[`${type.split('.')[0]}Id`]
  const about = [named, ...Object.values(payload)].find(
    (value): value is string => typeof value === 'string' && /^[a-z]{2,4}_[0-9a-z]{26}$/.test(value),
  )
  return about === undefined ? null : <Id value={about} />
}

const compact = (row: RecordedEvent) => (
  <>
    <span className="truncate font-mono text-sm">{row.type}</span>
    <span className="flex items-center justify-between gap-3 text-sm text-ink-2">
      <About row={row} />
      <Time at={row.createdAt} />
    </span>
  </>
)

function EventSheet({ eventId, onClose }: { eventId: string | undefined; onClose: () => void }) {
  const purser = usePurser()
  const maySend = useMay('member')
  const resend = useMutation({
    mutationFn: (id: string) => purser.events.resend(id, {}),
    onSuccess: () => toastDone('The event is sent again'),
  })
  return (
    <RecordSheet
      title="Event"
      open={eventId !== undefined}
      onClose={onClose}
      footer={
        eventId !== undefined &&
        maySend && (
          <Button tone="primary" busy={resend.isPending} onClick={() => resend.mutate(eventId)}>
            <RotateCw aria-hidden /> Send it again
          </Button>
        )
      }
    >
      <div className="flex flex-col gap-5">
        {eventId !== undefined && <EventDetail eventId={eventId} />}
        {resend.error !== null && <ErrorBlock error={resend.error} />}
      </div>
    </RecordSheet>
  )
}

function EventDetail({ eventId }: { eventId: string }) {
  const { data, error } = useQuery(eventQuery(usePurser(), eventId))
  if (data === undefined) return error === null ? <Skeleton lines={9} /> : <ErrorBlock error={error} />
  return (
    <>
      <Facts>
        <Fact name="Type">
          <span className="font-mono text-sm">{data.type}</span>
        </Fact>
        <Fact name="Event">
          <Id value={data.id} />
        </Fact>
        <Fact name="Happened">
          <Time at={data.createdAt} full />
        </Fact>
      </Facts>
      <CodeBlock text={JSON.stringify(data.payload, null, 2)} label="Copy the payload" tall />
    </>
  )
}
