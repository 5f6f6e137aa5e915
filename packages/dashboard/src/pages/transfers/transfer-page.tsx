import { getRouteApi } from '@tanstack/react-router'
import { DetailPage } from '../../ui/detail-page.tsx'
import { TransferDetail } from './transfer-detail.tsx'

const route = getRouteApi('/shell/transfers/$transferId')

export function TransferPage() {
  const { transferId } = route.useParams()
  return (
    <DetailPage to="/transfers" list="Transfers">
      <TransferDetail transferId={transferId} wide />
    </DetailPage>
  )
}
