import { useQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { usePurser } from '../../api/context.ts'
import { DetailPage } from '../../ui/detail-page.tsx'
import { ErrorBlock } from '../../ui/error-block.tsx'
import { Skeleton } from '../../ui/page.tsx'
import { ApprovalCard } from './approval-card.tsx'
import { approvalQuery } from './queries.ts'

const route = getRouteApi('/shell/approvals/$approvalId')

export function ApprovalPage() {
  const { approvalId } = route.useParams()
  return (
    <DetailPage to="/approvals" list="Approvals">
      <div className="max-w-180">
        <ApprovalDetail approvalId={approvalId} />
      </div>
    </DetailPage>
  )
}

export function ApprovalDetail({ approvalId }: { approvalId: string }) {
  const { data, error, refetch } = useQuery(approvalQuery(usePurser(), approvalId))
  if (data !== undefined) return <ApprovalCard approval={data} heading="h1" />
  return error === null ? <Skeleton lines={9} /> : <ErrorBlock error={error} onRetry={() => refetch()} />
}
