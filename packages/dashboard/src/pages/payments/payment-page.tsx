import { getRouteApi } from '@tanstack/react-router'
import { DetailPage } from '../../ui/detail-page.tsx'
import { PaymentDetail } from './payment-detail.tsx'

const route = getRouteApi('/shell/payments/$paymentId')

/** The page of one payment. */
export function PaymentPage() {
  const { paymentId } = route.useParams()
  return (
    <DetailPage to="/payments" list="Payments">
      <PaymentDetail paymentId={paymentId} wide />
    </DetailPage>
  )
}
