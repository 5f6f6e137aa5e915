import { monthAround, type Recount } from '../plans/index.ts'
import { countPaymentsBetween } from './store.ts'

/** Recounts the payments of the present month that did not end without money. */
export const paymentRecount: Recount = {
  kind: 'payments',
  count: (db, tenant, now) => {
    const { start, end } = monthAround(now)
    return countPaymentsBetween(db, tenant, start, end)
  },
}
