import type { Webhook } from '@purser/sdk'
import { useQueries, useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { Webhook as WebhookIcon } from 'lucide-react'
import { useCallback, useState } from 'react'
import { usePurser } from '../../api/context.ts'
import { useListing } from '../../api/listing.ts'
import { createdColumn } from '../../ui/created-column.tsx'
import { shownCount } from '../../ui/format.ts'
import { ListCard } from '../../ui/list-card.tsx'
import { Empty, Page } from '../../ui/page.tsx'
import { RowLink } from '../../ui/row-link.tsx'
import { StateBadge } from '../../ui/state.tsx'
import type { Column } from '../../ui/table.tsx'
import { Time } from '../../ui/values.tsx'
import { NewWebhookButton, NewWebhookSheet } from './new-webhook.tsx'
import { eventWords, healthOf, healthQuery, shortUrl, webhooksKey } from './queries.ts'

/** All endpoints, with how their newest deliveries went. */
export function WebhooksPage() {
  const purser = usePurser()
  const navigate = useNavigate()
  const listing = useListing([...webhooksKey, 'list'], (query, options) => purser.webhooks.list(query, options).page())
  const open = useCallback(
    ({ id }: Webhook) => void navigate({ to: '/webhooks/$webhookId', params: { webhookId: id } }),
    [navigate],
  )
  const failing = useFailing(listing.rows)
  const [isMaking, setMaking] = useState(false)
  const make = <NewWebhookButton onOpen={() => setMaking(true)} />
  return (
    <Page title="Webhooks" state={summaryOf(listing.rows, { failing, hasMore: listing.hasMore })} action={make} wide>
      <ListCard
        label="Webhooks"
        listing={listing}
        columns={columns}
        rowKey={rowKey}
        compact={compact}
        onOpen={open}
        empty={
          <Empty icon={<WebhookIcon />} title="No endpoints yet" action={make}>
            An endpoint is a URL that receives each event as a signed POST, retried until it returns 2xx.
          </Empty>
        }
      />
      {isMaking && <NewWebhookSheet onClose={() => setMaking(false)} />}
    </Page>
  )
}

const rowKey = ({ id }: Webhook) => id

/** The number of active endpoints whose newest attempts failed, among those that are read. */
function useFailing(rows: readonly Webhook[]): number {
  const purser = usePurser()
  const active = rows.filter(({ isActive }) => isActive)
  const read = useQueries({ queries: active.map(({ id }) => healthQuery(purser, id)) })
  return read.filter(({ data }) => data !== undefined && healthOf(data.items).isFailing).length
}

function summaryOf(rows: readonly Webhook[], { failing, hasMore }: { failing: number; hasMore: boolean }): string {
  if (rows.length === 0) return 'Where events are sent as they happen.'
  const off = rows.filter(({ isActive }) => !isActive).length
  const shown = shownCount(rows.length, 'endpoint', { hasMore })
  const states = [...(failing > 0 ? [`${failing} failing`] : []), ...(off > 0 ? [`${off} off`] : [])]
  return states.length === 0 ? `${shown}, all on.` : `${shown}: ${states.join(', ')}.`
}

const columns: readonly Column<Webhook>[] = [
  { id: 'url', head: 'Endpoint', cell: (row) => <EndpointLink row={row} /> },
  { id: 'state', head: 'State', width: 'w-25', cell: (row) => <WebhookBadge webhook={row} /> },
  { id: 'health', head: 'Newest attempts', width: 'w-56', cell: (row) => <HealthWords webhook={row} /> },
  { id: 'events', head: 'Events', width: 'w-64', from: 'xl', cell: eventWords },
  { ...createdColumn(), from: 'lg' },
]

function EndpointLink({ row }: { row: Webhook }) {
  return (
    <RowLink to={`/webhooks/${row.id}`}>
      <span className="truncate font-medium">{shortUrl(row)}</span>
    </RowLink>
  )
}

export function WebhookBadge({ webhook: { id, isActive } }: { webhook: Webhook }) {
  const { data } = useQuery(healthQuery(usePurser(), id))
  if (!isActive) return <StateBadge state="void">Off</StateBadge>
  return data !== undefined && healthOf(data.items).isFailing ? (
    <StateBadge state="failed">Failing</StateBadge>
  ) : (
    <StateBadge state="settled">On</StateBadge>
  )
}

function HealthWords({ webhook }: { webhook: Webhook }) {
  const { data, error } = useQuery(healthQuery(usePurser(), webhook.id))
  if (error !== null) return <span className="text-ink-3">not readable now</span>
  if (data === undefined) return <span className="skeleton inline-block h-3.5 w-24 align-middle" />
  const { attempts, failed } = healthOf(data.items)
  if (attempts === 0) return <span className="text-ink-3">none sent yet</span>
  return failed === 0 ? (
    <span className="num text-ink-2">all {attempts} delivered</span>
  ) : (
    <span className="num text-failed">
      {failed} of {attempts} failed
    </span>
  )
}

const compact = (row: Webhook) => (
  <>
    <span className="flex items-center justify-between gap-3">
      <EndpointLink row={row} />
      <WebhookBadge webhook={row} />
    </span>
    <span className="flex items-center justify-between gap-3 text-sm text-ink-2">
      <HealthWords webhook={row} />
      <Time at={row.createdAt} />
    </span>
  </>
)
