import { monthAround, type Recount } from '../plans/index.ts'
import { countPaymentsBetween } from './store.ts'

/** The payments of the present month that were not lost, counted from their rows. */
export const paymentRecount: Recount = {
  kind: 'payments',
  count: (db, tenant, now) => {
    const { start, end } = monthAround(now)
    return countPaymentsBetween(db, tenant, start, end)
  },
}
