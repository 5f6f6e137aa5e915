import type { Webhook, WebhookAttempt } from '@purser/sdk'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { RotateCw, Send } from 'lucide-react'
import { useCallback } from 'react'
import { useMay, usePurser } from '../../api/context.ts'
import { type ListingState, useListing } from '../../api/listing.ts'
import { Button } from '../../ui/button.tsx'
import { CodeBlock, readable } from '../../ui/code-block.tsx'
import { createdColumn } from '../../ui/created-column.tsx'
import { ErrorBlock } from '../../ui/error-block.tsx'
import { duration } from '../../ui/format.ts'
import { ListCard } from '../../ui/list-card.tsx'
import { Empty, Fact, Facts } from '../../ui/page.tsx'
import { RecordSheet } from '../../ui/record-sheet.tsx'
import { StateBadge } from '../../ui/state.tsx'
import type { Column } from '../../ui/table.tsx'
import { toastDone } from '../../ui/toast.tsx'
import { Id, Time } from '../../ui/values.tsx'
import { attemptWords, readAttemptsSoon, webhooksKey } from './queries.ts'
import { SentSection } from './sent-section.tsx'

interface AttemptsProps {
  readonly webhook: Webhook
  readonly openId: string | undefined
}

function useAttempts({ id }: Webhook): ListingState<WebhookAttempt> {
  const purser = usePurser()
  return useListing([...webhooksKey, 'attempts', id], (query, options) =>
    purser.webhooks.attempts.list(id, query, options).page(),
  )
}

function useShow({ id }: Webhook): (attemptId: string | undefined) => void {
  const navigate = useNavigate()
  return useCallback(
    (attemptId) =>
      void navigate({
        to: '/webhooks/$webhookId',
        params: { webhookId: id },
        search: attemptId === undefined ? {} : { open: attemptId },
        resetScroll: false,
      }),
    [navigate, id],
  )
}

/** Every attempt to deliver, newest first. */
export function Attempts({ webhook, openId }: AttemptsProps) {
  const listing = useAttempts(webhook)
  const show = useShow(webhook)
  const open = useCallback(({ id }: WebhookAttempt) => show(id), [show])
  return (
    <ListCard
      label="Attempts"
      listing={listing}
      columns={columns}
      rowKey={rowKey}
      compact={compact}
      onOpen={open}
      openKey={openId}
      empty={
        <Empty icon={<Send />} title="No deliveries yet">
          Each attempt appears here with its request, what the endpoint returned, and when the next attempt is due.
        </Empty>
      }
    />
  )
}

const rowKey = ({ id }: WebhookAttempt) => id

const columns: readonly Column<WebhookAttempt>[] = [
  { id: 'type', head: 'Event', cell: ({ type }) => <span className="font-mono text-sm">{type}</span> },
  { id: 'state', head: 'State', width: 'w-30', cell: (row) => <AttemptBadge row={row} /> },
  {
    id: 'answer',
    head: 'Response',
    width: 'w-56',
    cell: (row) => <span className="text-ink-2">{attemptWords(row)}</span>,
  },
  { id: 'attempt', head: 'Attempt', align: 'right', width: 'w-21', from: 'lg', cell: ({ attempt }) => attempt },
  {
    id: 'took',
    head: 'Duration',
    align: 'right',
    width: 'w-21',
    from: 'lg',
    cell: ({ durationMs }) => <span className="num">{duration(durationMs)}</span>,
  },
  createdColumn('Sent'),
]

function AttemptBadge({ row: { status } }: { row: WebhookAttempt }) {
  return status === 'failed' ? <StateBadge state="failed" /> : <StateBadge state="settled">Delivered</StateBadge>
}

const compact = (row: WebhookAttempt) => (
  <>
    <span className="flex items-center justify-between gap-3">
      <span className="truncate font-mono text-sm">{row.type}</span>
      <AttemptBadge row={row} />
    </span>
    <span className="flex items-center justify-between gap-3 text-sm text-ink-2">
      <span className="truncate">{attemptWords(row)}</span>
      <Time at={row.createdAt} />
    </span>
  </>
)

/** One attempt: what was sent and what came back, and a button that sends it again. */
export function AttemptSheet({ webhook, openId }: AttemptsProps) {
  const purser = usePurser()
  const queries = useQueryClient()
  const mayReplay = useMay('member') && webhook.isActive
  const show = useShow(webhook)
  const { rows } = useAttempts(webhook)
  const attempt = rows.find(({ id }) => id === openId)
  const replay = useMutation({
    mutationFn: (deliveryId: string) => purser.webhooks.replay(webhook.id, { deliveryId }),
    onSuccess: () => {
      toastDone('The event is sent again')
      readAttemptsSoon(queries)
      show(undefined)
    },
  })
  return (
    <RecordSheet
      title="Attempt"
      open={openId !== undefined}
      onClose={() => show(undefined)}
      footer={
        attempt !== undefined &&
        mayReplay && (
          <Button tone="primary" busy={replay.isPending} onClick={() => replay.mutate(attempt.deliveryId)}>
            <RotateCw aria-hidden /> Send it again
          </Button>
        )
      }
    >
      {attempt === undefined ? (
        <p className="text-ink-2">This attempt is not loaded yet. Scroll the list to load more.</p>
      ) : (
        <div className="flex flex-col gap-5">
          <AttemptFacts attempt={attempt} />
          {replay.error !== null && <ErrorBlock error={replay.error} />}
          <section className="flex min-w-0 flex-col gap-2">
            <h3 className="font-medium">Request</h3>
            <SentSection attempt={attempt} webhookId={webhook.id} />
          </section>
          <section className="flex min-w-0 flex-col gap-2">
            <h3 className="font-medium">Response</h3>
            {attempt.responseBody === null || attempt.responseBody === '' ? (
              <p className="text-ink-2">{attempt.responseStatus === null ? 'Nothing.' : 'An empty body.'}</p>
            ) : (
              <CodeBlock text={readable(attempt.responseBody)} label="Copy the response" />
            )}
          </section>
        </div>
      )}
    </RecordSheet>
  )
}

function AttemptFacts({ attempt }: { attempt: WebhookAttempt }) {
  return (
    <Facts>
      <Fact name="Event">
        <span className="font-mono text-sm">{attempt.type}</span> <Id value={attempt.eventId} />
      </Fact>
      <Fact name="State">
        <AttemptBadge row={attempt} /> {attemptWords(attempt)}
      </Fact>
      <Fact name="Attempt">
        {attempt.attempt}, took {duration(attempt.durationMs)}
      </Fact>
      <Fact name="Delivery">
        <Id value={attempt.deliveryId} />
      </Fact>
      <Fact name="Sent">
        <Time at={attempt.createdAt} full />
      </Fact>
      {attempt.nextAttemptAt !== null && (
        <Fact name="Next attempt">
          <Time at={attempt.nextAttemptAt} full />
        </Fact>
      )}
    </Facts>
  )
}
