import { getRouteApi } from '@tanstack/react-router'
import { DetailPage } from '../../ui/detail-page.tsx'
import { PaymentDetail } from './payment-detail.tsx'

const route = getRouteApi('/shell/payments/$paymentId')

/** A payment on a page of its own: what its address shows when it is loaded. */
export function PaymentPage() {
  const { paymentId } = route.useParams()
  return (
    <DetailPage to="/payments" list="Payments">
      <PaymentDetail paymentId={paymentId} wide />
    </DetailPage>
  )
}
