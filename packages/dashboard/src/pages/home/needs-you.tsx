import type { PaymentStatistics, Usage } from '@purser/sdk'
import { type UseQueryResult, useQueries, useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { CircleCheck, Fuel, Gauge, ServerOff, UserCheck, WebhookOff } from 'lucide-react'
import { chainsQuery } from '../../api/chains.ts'
import { usePurser } from '../../api/context.ts'
import { useRefreshOn } from '../../live/use-live.ts'
import { ErrorBlock } from '../../ui/error-block.tsx'
import { count, groupDecimal, networkName } from '../../ui/format.ts'
import { Card, Skeleton } from '../../ui/page.tsx'
import { shownWaitingMax, waitingQuery } from '../approvals/queries.ts'
import { isNearlyUsed, Quotas, quotasOf, quotaWords, usageKey, usageQuery } from '../usage/quotas.tsx'
import { holdsQuery } from '../wallets/queries.ts'
import { healthOf, healthQuery } from '../webhooks/queries.ts'
import { holdNeeds } from './holds.tsx'
import type { Need } from './need.ts'

/** Home checks the attempts of this many endpoints, the newest. The page of webhooks checks all that it lists. */
const endpointsReadMax = 5

/** A network is listed once this share of its daily gas budget is used. */
const gasShareMin = 0.8

/** The work that waits for the reader: approvals, money on hold, gas budgets that run out, networks without a node, endpoints that are off or fail, quotas that run out; and how full the plan is. */
export function NeedsYou({ statistics }: { statistics: PaymentStatistics | undefined }) {
  const usage = useQuery(usageQuery(usePurser()))
  useRefreshOn(['payment.', 'vault.'], usageKey)
  const { needs, error, readAgain } = useNeeds(statistics, usage)
  return (
    // On a phone the cards are in the column of the page, and what waits comes first.
    <div className="flex min-w-0 flex-col gap-5 max-lg:contents">
      <Card title="Needs attention" className="max-lg:order-first">
        {error !== null ? (
          <ErrorBlock error={error} onRetry={readAgain} />
        ) : needs === undefined ? (
          <Skeleton lines={2} />
        ) : needs.length === 0 ? (
          <p className="flex items-center gap-2 text-ink-2">
            <CircleCheck className="size-4 text-settled" aria-hidden /> Nothing needs your attention.
          </p>
        ) : (
          <ul className="flex flex-col gap-2.5">
            {needs.map(({ key, ...need }) => (
              <NeedItem key={key} {...need} />
            ))}
          </ul>
        )}
      </Card>
      <Card title="This month’s plan">
        {usage.data !== undefined ? (
          <Quotas quotas={quotasOf(usage.data)} />
        ) : usage.error === null ? (
          <Skeleton lines={5} />
        ) : (
          <ErrorBlock error={usage.error} onRetry={() => usage.refetch()} />
        )}
      </Card>
    </div>
  )
}

function NeedItem({ icon, text, to, search = {}, details }: Omit<Need, 'key'>) {
  return (
    <li className="flex gap-2 [&_svg]:mt-0.5 [&_svg]:size-4 [&_svg]:shrink-0 [&_svg]:text-held">
      {icon}{' '}
      <span className="min-w-0 break-words">
        {to === undefined ? (
          text
        ) : (
          <Link to={to} search={search} className="underline">
            {text}
          </Link>
        )}
        {details}
      </span>
    </li>
  )
}

/** Reads all that can wait for the reader. `needs` is undefined until each of its sources is read; a failure to read what is on hold is a need itself. */
function useNeeds(statistics: PaymentStatistics | undefined, usage: Pick<UseQueryResult<Usage>, 'data' | 'isPending'>) {
  const purser = usePurser()
  const onHold = useQuery(holdsQuery(purser))
  const chains = useQuery(chainsQuery(purser))
  const webhooks = useQuery({
    queryKey: ['webhooks', 'needs'],
    queryFn: ({ signal }) => purser.webhooks.list({ limit: 100 }, { signal }).toArray({ limit: 100 }),
  })
  const waiting = useQuery(waitingQuery(purser))
  const active = (webhooks.data ?? []).filter(({ isActive }) => isActive).slice(0, endpointsReadMax)
  const health = useQueries({ queries: active.map(({ id }) => healthQuery(purser, id)) })
  const failing = active.filter((_, index) => healthOf(health[index]?.data?.items ?? []).isFailing)
  const error = waiting.error ?? chains.error ?? webhooks.error
  const readAgain = () => {
    for (const read of [waiting, chains, webhooks]) if (read.error !== null) void read.refetch()
  }
  const approvals = waiting.data?.items.length ?? 0
  const needs: readonly Need[] = [
    ...(approvals === 0
      ? []
      : [{ key: 'approvals', icon: <UserCheck />, text: waitingWords(approvals), to: '/approvals' }]),
    ...holdNeeds(onHold),
    ...gasNeeds(statistics),
    ...(chains.data ?? [])
      .filter(({ configured, status }) => configured && status === 'down')
      .map(({ name }) => ({ key: name, icon: <ServerOff />, text: `No RPC node of ${networkName(name)} responds.` })),
    ...(webhooks.data ?? [])
      .filter(({ isActive }) => !isActive)
      .map(({ id, url }) => ({
        key: id,
        icon: <WebhookOff />,
        text: `${new URL(url).host} receives no events: the endpoint is turned off.`,
        to: `/webhooks/${id}`,
      })),
    ...failing.map(({ id, url }) => ({
      key: id,
      icon: <WebhookOff />,
      text: `Deliveries to ${new URL(url).host} fail.`,
      to: `/webhooks/${id}`,
    })),
    ...quotasOf(usage.data)
      .filter(isNearlyUsed)
      .map((quota) => ({ key: quota.name, icon: <Gauge />, text: `${quota.label}: ${quotaWords(quota)} used.` })),
  ]
  const isReady =
    !onHold.isPending &&
    waiting.data !== undefined &&
    !usage.isPending &&
    chains.data !== undefined &&
    webhooks.data !== undefined
  return { needs: isReady ? needs : undefined, error, readAgain }
}

function waitingWords(waiting: number): string {
  if (waiting > shownWaitingMax) return `More than ${count(shownWaitingMax, 'request')} wait for an approval.`
  return `${count(waiting, 'request')} ${waiting === 1 ? 'waits' : 'wait'} for an approval.`
}

/** Networks on which at least 80 % of today's gas budget (UTC) is used. Once all of it is used, payments are refused until the next UTC day. */
function gasNeeds(statistics: PaymentStatistics | undefined): readonly Need[] {
  const today = new Date().toISOString().slice(0, 10)
  const { gas = [], gasUsdPerDayMax = '0' } = statistics ?? {}
  return gas
    .filter(({ day, usd }) => day === today && Number(usd) >= gasShareMin * Number(gasUsdPerDayMax))
    .map(({ network, usd }) => ({
      key: `gas ${network}`,
      icon: <Fuel />,
      text: `${networkName(network)}: ${groupDecimal(usd)} of ${groupDecimal(gasUsdPerDayMax)} USD of today’s gas is used.`,
    }))
}
