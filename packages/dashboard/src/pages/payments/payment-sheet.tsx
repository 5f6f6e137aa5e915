import { Link } from '@tanstack/react-router'
import { Maximize2 } from 'lucide-react'
import { Sheet } from '../../ui/overlay.tsx'
import { Tip } from '../../ui/tip.tsx'
import { PaymentDetail } from './payment-detail.tsx'

/** A payment beside the list that it was opened from. */
export function PaymentSheet({ paymentId, onClose }: { paymentId: string | undefined; onClose: () => void }) {
  return (
    <Sheet
      open={paymentId !== undefined}
      onClose={onClose}
      title="Payment"
      head={
        paymentId !== undefined && (
          <Tip text="Open as a page">
            <Link
              to="/payments/$paymentId"
              params={{ paymentId }}
              aria-label="Open as a page"
              className="inline-flex size-7 items-center justify-center rounded-control text-ink-3 hover:bg-well hover:text-ink"
            >
              <Maximize2 className="size-4" aria-hidden />
            </Link>
          </Tip>
        )
      }
    >
      {paymentId !== undefined && <PaymentDetail paymentId={paymentId} />}
    </Sheet>
  )
}
