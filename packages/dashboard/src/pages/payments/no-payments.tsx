import { Link } from '@tanstack/react-router'
import { ArrowDownToLine, FilterX } from 'lucide-react'
import { buttonClasses } from '../../ui/button.tsx'
import { Empty } from '../../ui/page.tsx'
import { TestPaymentButton } from './test-payment.tsx'

/** No rows: because of the filters, or because nobody has paid yet. */
export function NoPayments({ isFiltered }: { isFiltered: boolean }) {
  if (isFiltered)
    return (
      <Empty
        icon={<FilterX />}
        title="No payment matches these filters"
        action={
          <Link to="/payments" search={{}} className={buttonClasses()}>
            Clear the filters
          </Link>
        }
      />
    )
  return (
    <Empty icon={<ArrowDownToLine />} title="No payments yet" action={<FirstSteps />}>
      A payment appears here the moment a payer signs for it, and changes in place until its money has moved.
    </Empty>
  )
}

function FirstSteps() {
  return (
    <>
      <TestPaymentButton tone="primary" />
      <Link to="/quick-start" className={buttonClasses()}>
        Open the quick start
      </Link>
    </>
  )
}
