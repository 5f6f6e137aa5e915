import { useQuery } from '@tanstack/react-query'
import { CircleCheck, Gauge, ServerOff, WebhookOff } from 'lucide-react'
import type { ReactNode } from 'react'
import { usePurser } from '../../api/context.ts'
import { ErrorBlock } from '../../ui/error-block.tsx'
import { networkName, sentenceCase } from '../../ui/format.ts'
import { Card, Skeleton } from '../../ui/page.tsx'

interface Need {
  readonly key: string
  readonly icon: ReactNode
  readonly text: string
}

/** Share of a quota from which it is worth a word. */
const quotaShareMin = 0.8

/** What waits for the reader: networks without a node, endpoints that are off, quotas that run out; and how full the plan is. */
export function NeedsYou() {
  const purser = usePurser()
  const usage = useQuery({ queryKey: ['usage'], queryFn: ({ signal }) => purser.account.usage({ signal }) })
  const chains = useQuery({
    queryKey: ['chains'],
    queryFn: ({ signal }) => purser.chains.list({}, { signal }).toArray({ limit: 100 }),
  })
  const webhooks = useQuery({
    queryKey: ['webhooks', 'needs'],
    queryFn: ({ signal }) => purser.webhooks.list({ limit: 100 }, { signal }).toArray({ limit: 100 }),
  })
  const error = usage.error ?? chains.error ?? webhooks.error
  const quotas = Object.entries(usage.data ?? {}).flatMap(([name, value]) =>
    isQuota(value) ? [{ name, ...value }] : [],
  )
  const needs: readonly Need[] = [
    ...(chains.data ?? [])
      .filter(({ configured, status }) => configured && status === 'down')
      .map(({ name }) => ({ key: name, icon: <ServerOff />, text: `No node of ${networkName(name)} answers.` })),
    ...(webhooks.data ?? [])
      .filter(({ isActive }) => !isActive)
      .map(({ id, url }) => ({
        key: id,
        icon: <WebhookOff />,
        text: `${new URL(url).host} gets no events: its endpoint is off.`,
      })),
    ...quotas
      .filter(({ used, limit }) => limit > 0 && used / limit >= quotaShareMin)
      .map(({ name, used, limit }) => ({
        key: name,
        icon: <Gauge />,
        text: `${quotaName(name)}: ${used} of ${limit} used.`,
      })),
  ]
  const isReady = usage.data !== undefined && chains.data !== undefined && webhooks.data !== undefined
  return (
    <div className="flex min-w-0 flex-col gap-5">
      <Card title="Needs you">
        {error !== null ? (
          <ErrorBlock error={error} />
        ) : !isReady ? (
          <Skeleton lines={2} />
        ) : needs.length === 0 ? (
          <p className="flex items-center gap-2 text-ink-2">
            <CircleCheck className="size-4 text-settled" aria-hidden /> Nothing waits for you.
          </p>
        ) : (
          <ul className="flex flex-col gap-2.5">
            {needs.map(({ key, icon, text }) => (
              <li key={key} className="flex gap-2 [&_svg]:mt-0.5 [&_svg]:size-4 [&_svg]:shrink-0 [&_svg]:text-held">
                {icon} <span className="min-w-0 break-words">{text}</span>
              </li>
            ))}
          </ul>
        )}
      </Card>
      <Card title="This month’s plan">
        {usage.data === undefined ? <Skeleton lines={5} /> : <Quotas quotas={quotas} />}
      </Card>
    </div>
  )
}

interface Quota {
  readonly used: number
  readonly limit: number
}

function isQuota(value: unknown): value is Quota {
  return typeof value === 'object' && value !== null && 'used' in value && 'limit' in value
}

function Quotas({ quotas }: { quotas: readonly (Quota & { readonly name: string })[] }) {
  return (
    <ul className="flex flex-col gap-3">
      {quotas.map(({ name, used, limit }) => (
        <li key={name}>
          <div className="flex justify-between gap-3">
            <span>{quotaName(name)}</span>
            <span className="num text-ink-2">
              {shown(name, used)} {limit > 0 ? `of ${shown(name, limit)}` : ''}
            </span>
          </div>
          {limit > 0 && (
            <div className="mt-1 h-1.5 overflow-hidden rounded-full bg-well">
              <div
                className={used / limit >= quotaShareMin ? 'h-full bg-held' : 'h-full bg-accent'}
                style={{ width: `${Math.min(100, (used / limit) * 100)}%` }}
              />
            </div>
          )}
        </li>
      ))}
    </ul>
  )
}

function quotaName(name: string): string {
  if (name === 'byoWallets') return 'Own wallets'
  const words = name.replace(/Bytes$/, '').replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)
  return sentenceCase(words)
}

function shown(name: string, number: number): string {
  if (!name.endsWith('Bytes')) return number.toLocaleString('en-US')
  const units = ['B', 'KB', 'MB', 'GB', 'TB'] as const
  const power = number === 0 ? 0 : Math.min(units.length - 1, Math.floor(Math.log10(number) / 3))
  return `${(number / 1_000 ** power).toLocaleString('en-US', { maximumFractionDigits: 1 })} ${units[power] ?? 'B'}`
}
