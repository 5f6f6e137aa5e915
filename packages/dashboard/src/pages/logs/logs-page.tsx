import type { LoggedRequest } from '@purser/sdk'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import { FilterX, Logs, RotateCw, X } from 'lucide-react'
import { useCallback } from 'react'
import { useWorkspace } from '../../api/context.ts'
import { useListing } from '../../api/listing.ts'
import { Button, buttonClasses } from '../../ui/button.tsx'
import { Select, SubmittedInput } from '../../ui/form.tsx'
import { ListCard } from '../../ui/list-card.tsx'
import { Empty, Page } from '../../ui/page.tsx'
import { PhoneFilters } from '../../ui/phone-filters.tsx'
import { CompactRequest, logColumns } from './columns.tsx'
import { RequestSheet } from './request-sheet.tsx'
import { type LogsSearch, methods, readLogsSearch, statusNames } from './search.ts'

const route = getRouteApi('/shell/logs')

/** The last requests of the environment: what was called, how it ended, and why it was refused. */
export function LogsPage() {
  const { purser, environment } = useWorkspace()
  const navigate = useNavigate()
  const { open, ...filters } = route.useSearch()
  const listing = useListing(['requests', 'list', environment, filters], (query, options) =>
    purser.requests.list({ ...query, ...filters }, options).page(),
  )
  const go = useCallback(
    (change: Record<string, string | undefined>) =>
      void navigate({
        to: '/logs',
        search: (old) => readLogsSearch({ ...old, ...change }),
        replace: true,
        resetScroll: false,
      }),
    [navigate],
  )
  const show = useCallback(({ id }: LoggedRequest) => go({ open: id }), [go])
  const isFiltered = Object.keys(filters).length > 0
  return (
    <Page
      title="Logs"
      state="The last 5,000 requests of the past 7 days, without their bodies."
      action={
        <Button onClick={listing.retry}>
          <RotateCw aria-hidden /> Refresh
        </Button>
      }
      wide
    >
      <Filters filters={filters} onSet={go} />
      <ListCard
        label="Logs"
        listing={listing}
        columns={logColumns}
        rowKey={rowKey}
        compact={compact}
        onOpen={show}
        openKey={open}
        empty={<NoRequests isFiltered={isFiltered} />}
      />
      <RequestSheet id={open} onClose={() => go({ open: undefined })} />
    </Page>
  )
}

const rowKey = ({ id }: LoggedRequest) => id
const compact = (row: LoggedRequest) => <CompactRequest row={row} />

interface FiltersProps {
  readonly filters: LogsSearch
  readonly onSet: (change: Record<string, string | undefined>) => void
}

function Filters({ filters, onSet }: FiltersProps) {
  const { status = '', method = '' } = filters
  const isOneStatus = status !== '' && !Object.hasOwn(statusNames, status)
  const chosen = Object.keys(filters).length
  return (
    <div className="mb-3 flex flex-wrap items-center gap-2">
      <PhoneFilters chosen={chosen}>
        <div className="col-span-2">
          <SubmittedInput
            key={filters.route ?? ''}
            label="Route"
            placeholder="Route, such as /payments/{id}"
            value={filters.route ?? ''}
            onSet={(text) => onSet({ route: text })}
          />
        </div>
        <Select aria-label="Status" value={status} onChange={({ target }) => onSet({ status: target.value })}>
          <option value="">Any status</option>
          {Object.entries(statusNames).map(([value, label]) => (
            <option key={value} value={value}>
              {label} ({value})
            </option>
          ))}
          {isOneStatus && <option value={status}>{status}</option>}
        </Select>
        <Select aria-label="Method" value={method} onChange={({ target }) => onSet({ method: target.value })}>
          <option value="">Any method</option>
          {methods.map((one) => (
            <option key={one} value={one}>
              {one}
            </option>
          ))}
        </Select>
        {chosen > 0 && (
          <Button
            tone="ghost"
            onClick={() => onSet({ status: undefined, method: undefined, route: undefined, apiKeyId: undefined })}
          >
            <X aria-hidden /> Clear
          </Button>
        )}
      </PhoneFilters>
    </div>
  )
}

function NoRequests({ isFiltered }: { isFiltered: boolean }) {
  if (isFiltered)
    return (
      <Empty
        icon={<FilterX />}
        title="No request matches these filters"
        action={
          <Link to="/logs" search={{}} className={buttonClasses()}>
            Clear the filters
          </Link>
        }
      />
    )
  return (
    <Empty
      icon={<Logs />}
      title="No requests yet"
      action={
        <Link to="/quick-start" className={buttonClasses('primary')}>
          Make the first one
        </Link>
      }
    >
      Each request with an API key appears here about a second after its response.
    </Empty>
  )
}
