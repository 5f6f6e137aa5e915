import type { Purser } from '@purser/sdk'
import type { QueryClient } from '@tanstack/react-query'
import { toastDone } from '../../ui/toast.tsx'
import { makeTestPayment } from './make-test-payment.ts'
import { paymentsKey } from './queries.ts'

/** Makes a test payment and shows a message; the lists that are shown read it. */
export async function payNow(purser: Purser, queries: QueryClient): Promise<void> {
  const { amount, coin } = await makeTestPayment(purser)
  toastDone(`Test payment of ${amount} ${coin} made`)
  void queries.invalidateQueries({ queryKey: paymentsKey })
}
