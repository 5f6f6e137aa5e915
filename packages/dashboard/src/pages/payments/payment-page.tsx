import { getRouteApi, Link } from '@tanstack/react-router'
import { ArrowLeft } from 'lucide-react'
import { PaymentDetail } from './payment-detail.tsx'

const route = getRouteApi('/shell/payments/$paymentId')

/** A payment on a page of its own: what its address shows when it is loaded. */
export function PaymentPage() {
  const { paymentId } = route.useParams()
  return (
    <div className="w-full max-w-[1200px] px-4 pt-5 pb-16 sm:px-8">
      <Link to="/payments" className="mb-4 inline-flex items-center gap-1.5 text-ink-2 hover:text-ink">
        <ArrowLeft className="size-4" aria-hidden /> Payments
      </Link>
      <PaymentDetail paymentId={paymentId} wide />
    </div>
  )
}
