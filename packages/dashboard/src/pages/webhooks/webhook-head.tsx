import type { Webhook } from '@purser/sdk'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { KeyRound, MoreHorizontal, Power, RotateCw, Send, Trash2 } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { useMay, usePurser } from '../../api/context.ts'
import { ActionDialog } from '../../ui/action-dialog.tsx'
import { Button } from '../../ui/button.tsx'
import { ErrorBlock } from '../../ui/error-block.tsx'
import { Field, Select } from '../../ui/form.tsx'
import { count } from '../../ui/format.ts'
import { Menu } from '../../ui/menu.tsx'
import { Dialog } from '../../ui/overlay.tsx'
import { type RangeName, rangeNames, ranges } from '../../ui/range.ts'
import { toastDone, toastFailed } from '../../ui/toast.tsx'
import { readAttemptsSoon, shortUrl, webhooksKey } from './queries.ts'
import { keepSecret } from './revealed-secret.ts'
import { WebhookSecret } from './webhook-secret.tsx'
import { WebhookBadge } from './webhooks-page.tsx'

type Open = 'replay' | 'switch' | 'rotate' | 'delete' | undefined

export function WebhookHead({ webhook }: { webhook: Webhook }) {
  const purser = usePurser()
  const queries = useQueryClient()
  const maySend = useMay('member')
  const mayChange = useMay('admin')
  const [open, setOpen] = useState<Open>()
  const close = () => setOpen(undefined)
  const send = useMutation({
    mutationFn: () => purser.webhooks.test(webhook.id),
    onSuccess: () => {
      toastDone('A test event is on its way')
      readAttemptsSoon(queries)
    },
    onError: toastFailed,
  })
  const choose = (next: Open) => () => setOpen(next)
  return (
    <header className="flex flex-wrap items-start justify-between gap-x-6 gap-y-3">
      <div className="flex min-w-0 flex-wrap items-center gap-x-3 gap-y-1">
        <h1 className="min-w-0 text-xl font-semibold tracking-tight break-all">{shortUrl(webhook)}</h1>
        <WebhookBadge webhook={webhook} />
      </div>
      <div className="flex flex-wrap gap-2">
        {maySend && webhook.isActive && (
          <>
            <Button tone="primary" busy={send.isPending} onClick={() => send.mutate()}>
              <Send aria-hidden /> Send a test event
            </Button>
            <Button onClick={choose('replay')}>
              <RotateCw aria-hidden /> Replay failed
            </Button>
          </>
        )}
        {mayChange && (
          <Menu
            trigger={
              <Button aria-label="More actions">
                <MoreHorizontal aria-hidden />
              </Button>
            }
            groups={[
              {
                items: [
                  {
                    label: webhook.isActive ? 'Turn it off' : 'Turn it on',
                    icon: <Power />,
                    onChoose: choose('switch'),
                  },
                  { label: 'Rotate the secret', icon: <KeyRound />, onChoose: choose('rotate') },
                  { label: 'Delete', icon: <Trash2 />, onChoose: choose('delete') },
                ],
              },
            ]}
          />
        )}
      </div>
      {open === 'replay' && <ReplayDialog webhook={webhook} onClose={close} />}
      {open === 'switch' && <SwitchDialog webhook={webhook} onClose={close} />}
      {open === 'rotate' && <RotateDialog webhook={webhook} onClose={close} />}
      {open === 'delete' && <DeleteDialog webhook={webhook} onClose={close} />}
    </header>
  )
}

interface DialogProps {
  readonly webhook: Webhook
  readonly onClose: () => void
}

interface ActProps {
  readonly title: string
  readonly act: string
  readonly keep: string
  readonly danger?: boolean
  readonly isReady?: boolean
  readonly children: ReactNode
  readonly work: () => Promise<unknown>
  readonly onDone: (result: unknown) => void
  readonly onClose: () => void
}

/** Confirms an action and runs it. */
function Act({ title, act, keep, danger = false, isReady = true, children, work, onDone, onClose }: ActProps) {
  const queries = useQueryClient()
  const run = useMutation({
    mutationFn: work,
    onSuccess: (result) => {
      onDone(result)
      void queries.invalidateQueries({ queryKey: webhooksKey })
      onClose()
    },
  })
  return (
    <ActionDialog
      title={title}
      act={act}
      keep={keep}
      tone={danger ? 'danger' : 'primary'}
      isReady={isReady}
      action={run}
      onClose={onClose}
    >
      {children}
    </ActionDialog>
  )
}

function ReplayDialog({ webhook, onClose }: DialogProps) {
  const purser = usePurser()
  const queries = useQueryClient()
  const [range, setRange] = useState<RangeName>('24h')
  const counted = useQuery({
    queryKey: [...webhooksKey, 'dead', webhook.id, range],
    queryFn: () => purser.webhooks.replay(webhook.id, { since: sinceOf(range), dryRun: true }),
    gcTime: 0,
  })
  const number = counted.data !== undefined && 'replayed' in counted.data ? counted.data.replayed : undefined
  return (
    <Act
      title="Replay what failed"
      act={
        number === undefined || number === 0
          ? 'Send them again'
          : `Send ${count(number, 'delivery', 'deliveries')} again`
      }
      isReady={(number ?? 0) > 0}
      keep="Cancel"
      onClose={onClose}
      work={() => purser.webhooks.replay(webhook.id, { since: sinceOf(range) })}
      onDone={(result) => {
        toastDone(replayedWords(result))
        readAttemptsSoon(queries)
      }}
    >
      <p className="text-ink-2">
        Deliveries of which every attempt failed are sent again with the same event id, so that your endpoint can
        recognize duplicates. Deliveries that are still being attempted are left alone.
      </p>
      <Field label="Failed in">
        {(wiring) => (
          <Select {...wiring} value={range} onChange={({ target }) => setRange(target.value as RangeName)}>
            {rangeNames.map((name) => (
              <option key={name} value={name}>
                {ranges[name].label}
              </option>
            ))}
          </Select>
        )}
      </Field>
      {counted.error !== null && <ErrorBlock error={counted.error} onRetry={() => counted.refetch()} />}
      <p role="status" className="font-medium">
        {number === undefined
          ? counted.error === null && 'Counting …'
          : number === 0
            ? 'No delivery failed permanently in this time.'
            : `${count(number, 'delivery', 'deliveries')} failed permanently${number === replaysMax ? ' or more. One replay sends as many' : ''}.`}
      </p>
    </Act>
  )
}

/** Most deliveries that one request replays. */
const replaysMax = 10_000

function sinceOf(range: RangeName): string {
  return new Date(Date.now() - ranges[range].ms).toISOString()
}

function replayedWords(result: unknown): string {
  if (typeof result !== 'object' || result === null || !('replayed' in result)) return 'The deliveries are sent again'
  const replayed = Number(result.replayed)
  return replayed === 0 ? 'No failed deliveries' : `${count(replayed, 'delivery', 'deliveries')} sent again`
}

function SwitchDialog({ webhook, onClose }: DialogProps) {
  const purser = usePurser()
  const { id, isActive } = webhook
  return (
    <Act
      title={isActive ? 'Turn this endpoint off' : 'Turn this endpoint on'}
      act={isActive ? 'Turn it off' : 'Turn it on'}
      keep={isActive ? 'Leave it on' : 'Leave it off'}
      danger={isActive}
      onClose={onClose}
      work={() => purser.webhooks.update(id, { isActive: !isActive })}
      onDone={() => toastDone(isActive ? 'The endpoint is off' : 'The endpoint is on')}
    >
      <p className="text-ink-2">
        {isActive
          ? 'Events that happen while it is off are never sent to it.'
          : 'It receives every event from then on.'}
      </p>
    </Act>
  )
}

function DeleteDialog({ webhook, onClose }: DialogProps) {
  const purser = usePurser()
  const navigate = useNavigate()
  return (
    <Act
      title="Delete this endpoint"
      act="Delete the endpoint"
      keep="Keep it"
      danger
      onClose={onClose}
      work={() => purser.webhooks.delete(webhook.id)}
      onDone={() => {
        toastDone('The endpoint is deleted')
        void navigate({ to: '/webhooks' })
      }}
    >
      <p className="break-all">{webhook.url}</p>
      <p className="text-ink-2">It receives no further events. Undelivered events are dropped.</p>
    </Act>
  )
}

function RotateDialog({ webhook, onClose }: DialogProps) {
  const purser = usePurser()
  const queries = useQueryClient()
  const rotate = useMutation({
    mutationFn: () => purser.webhooks.rotateSecret(webhook.id),
    onSuccess: ({ secret }) => keepSecret(queries, webhook.id, secret),
  })
  const { data } = rotate
  return (
    <Dialog
      open
      onClose={onClose}
      title="Rotate the secret"
      footer={
        data === undefined ? (
          <>
            <Button onClick={onClose}>Keep the old one</Button>
            <Button tone="primary" busy={rotate.isPending} onClick={() => rotate.mutate()}>
              Rotate the secret
            </Button>
          </>
        ) : (
          <Button tone="primary" onClick={onClose}>
            I saved the secret
          </Button>
        )
      }
    >
      <div className="flex flex-col gap-4">
        {data === undefined ? (
          <p className="text-ink-2">
            For 24 hours deliveries are signed with both, so that you can change it without a gap.
          </p>
        ) : (
          <WebhookSecret secret={data.secret} />
        )}
        {rotate.error !== null && <ErrorBlock error={rotate.error} onRetry={() => rotate.mutate()} />}
      </div>
    </Dialog>
  )
}
