import { getRouteApi } from '@tanstack/react-router'
import { DetailPage } from '../../ui/detail-page.tsx'
import { WithdrawalDetail } from './withdrawal-detail.tsx'

const route = getRouteApi('/shell/withdrawals/$withdrawalId')

export function WithdrawalPage() {
  const { withdrawalId } = route.useParams()
  return (
    <DetailPage to="/withdrawals" list="Withdrawals">
      <WithdrawalDetail withdrawalId={withdrawalId} wide />
    </DetailPage>
  )
}
