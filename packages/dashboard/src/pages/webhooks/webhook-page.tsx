import { useQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { usePurser } from '../../api/context.ts'
import { DetailPage } from '../../ui/detail-page.tsx'
import { ErrorBlock } from '../../ui/error-block.tsx'
import { Skeleton } from '../../ui/page.tsx'
import { AttemptSheet, Attempts } from './attempts.tsx'
import { HealthCard } from './health-card.tsx'
import { webhookQuery } from './queries.ts'
import { WebhookHead } from './webhook-head.tsx'

const route = getRouteApi('/shell/webhooks/$webhookId')

/** One endpoint: how it is doing, and every attempt to deliver to it. */
export function WebhookPage() {
  const { webhookId } = route.useParams()
  const { open } = route.useSearch()
  const { data, error, refetch } = useQuery(webhookQuery(usePurser(), webhookId))
  return (
    <DetailPage to="/webhooks" list="Webhooks">
      {data !== undefined ? (
        <div className="flex flex-col gap-5">
          <WebhookHead webhook={data} />
          <HealthCard webhook={data} />
          <Attempts webhook={data} openId={open} />
          <AttemptSheet webhook={data} openId={open} />
        </div>
      ) : error === null ? (
        <Skeleton lines={9} />
      ) : (
        <ErrorBlock error={error} onRetry={() => refetch()} />
      )}
    </DetailPage>
  )
}
