import { monthAround, type Recount } from '../plans/index.ts'
import { countingPayments } from './store.ts'

/** Recounts the payments of the present month that did not end without money. */
export const paymentRecount: Recount = {
  kind: 'payments',
  counting: (tenant, now) => {
    const { start, end } = monthAround(now)
    return countingPayments(tenant, start, end)
  },
}
