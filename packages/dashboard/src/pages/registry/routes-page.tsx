import type { RegistryRoute } from '@purser/sdk'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import { FilterX, Route as RouteIcon } from 'lucide-react'
import { type FormEvent, useCallback, useState } from 'react'
import { usePurser } from '../../api/context.ts'
import { useListing } from '../../api/listing.ts'
import { useRefreshOn } from '../../live/use-live.ts'
import { buttonClasses } from '../../ui/button.tsx'
import { Select, TextInput } from '../../ui/form.tsx'
import { count, shownCount } from '../../ui/format.ts'
import { ListCard } from '../../ui/list-card.tsx'
import { Empty, Page } from '../../ui/page.tsx'
import { PhoneFilters } from '../../ui/phone-filters.tsx'
import { TestPaymentButton } from '../payments/test-payment.tsx'
import { CompactRoute, routeColumns } from './columns.tsx'
import { RouteSheet } from './route-sheet.tsx'
import { type RoutesSearch, readRoutesSearch } from './search.ts'

const route = getRouteApi('/shell/routes')

export const registryKey = ['registry'] as const

/** The routes that were reported to the registry: what they cost and how often they were reported. A report is not a payment. */
export function RoutesPage() {
  const purser = usePurser()
  const navigate = useNavigate()
  const { open, ...filters } = route.useSearch()
  const listing = useListing([...registryKey, 'list', filters], (query, options) =>
    purser.registry.routes.list({ ...query, ...filters }, options).page(),
  )
  useRefreshOn(['payment.received'], registryKey)
  const go = useCallback(
    (change: Record<string, string | undefined>) =>
      void navigate({
        to: '/routes',
        search: (old) => readRoutesSearch({ ...old, ...change }),
        replace: true,
        resetScroll: false,
      }),
    [navigate],
  )
  const show = useCallback(({ id }: RegistryRoute) => go({ open: id }), [go])
  return (
    <Page title="Routes" state={summaryOf(listing)} wide>
      <Filters filters={filters} onSet={go} />
      <ListCard
        label="Routes"
        listing={listing}
        columns={routeColumns}
        rowKey={rowKey}
        compact={compact}
        onOpen={show}
        openKey={open}
        empty={<NoRoutes isFiltered={Object.keys(filters).length > 0} />}
      />
      <RouteSheet id={open} onClose={() => go({ open: undefined })} />
    </Page>
  )
}

const rowKey = ({ id }: RegistryRoute) => id
const compact = (row: RegistryRoute) => <CompactRoute row={row} />

function summaryOf({ rows, hasMore }: { readonly rows: readonly RegistryRoute[]; readonly hasMore: boolean }): string {
  if (rows.length === 0) return 'Routes that agents can buy, with their prices.'
  const reports = rows.reduce((sum, { snapshotCount }) => sum + snapshotCount, 0)
  return `${shownCount(rows.length, 'route', { hasMore })}, reported ${count(reports, 'time')}.`
}

interface FiltersProps {
  readonly filters: RoutesSearch
  readonly onSet: (change: Record<string, string | undefined>) => void
}

function Filters({ filters, onSet }: FiltersProps) {
  return (
    <div className="mb-3 flex flex-wrap items-center gap-2">
      <PhoneFilters chosen={Object.keys(filters).length}>
        <SearchField key={filters.q ?? ''} value={filters.q ?? ''} onSet={(q) => onSet({ q })} />
        <Select
          aria-label="Protocol"
          value={filters.protocol ?? ''}
          onChange={({ target }) => onSet({ protocol: target.value })}
        >
          <option value="">Any protocol</option>
          <option value="x402">x402</option>
          <option value="mpp">MPP</option>
        </Select>
      </PhoneFilters>
    </div>
  )
}

function SearchField({ value, onSet }: { value: string; onSet: (q: string) => void }) {
  const [text, setText] = useState(value)
  const submit = (event: FormEvent) => {
    event.preventDefault()
    onSet(text.trim())
  }
  return (
    <form onSubmit={submit} className="col-span-2 sm:w-72">
      <TextInput
        aria-label="Search routes"
        placeholder="Search hosts and paths"
        value={text}
        onChange={({ target }) => setText(target.value)}
        onBlur={() => text.trim() !== value && onSet(text.trim())}
      />
    </form>
  )
}

function NoRoutes({ isFiltered }: { isFiltered: boolean }) {
  if (isFiltered)
    return (
      <Empty
        icon={<FilterX />}
        title="No route matches these filters"
        action={
          <Link to="/routes" search={{}} className={buttonClasses()}>
            Clear the filters
          </Link>
        }
      />
    )
  return (
    <Empty icon={<RouteIcon />} title="No routes yet" action={<TestPaymentButton tone="primary" />}>
      A route appears here after the SDK reports a payment for it, with its price and how to call it.
    </Empty>
  )
}
