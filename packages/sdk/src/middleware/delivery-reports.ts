import type { Purser } from '../client.ts'
import { pause } from '../transport.ts'
import type { Fault } from './faults.ts'

const batchMax = 100
/** Above this, the oldest reports are dropped. Their payers could then redeem a payment that was already delivered. */
const waitingMax = 10_000
const attemptsMax = 8
const delayMsMax = 5_000

/** Records that the response was written to the payer's connection. Never throws or waits. */
export type ReportDelivered = (paymentId: string) => void

/**
 * Reports delivered payments to Purser after the responses were sent: one request at a time, with up to 100 payments
 * each. A failed report is retried for about half a minute.
 */
export function openDeliveryReports(
  purser: Pick<Purser, 'payments'>,
  onFault: (fault: Fault) => void,
): ReportDelivered {
  const waiting: string[] = []
  let isSending = false
  const report = async (paymentIds: string[]): Promise<void> => {
    for (let attempt = 1; ; attempt++) {
      try {
        await purser.payments.delivered({ paymentIds }, { maxRetries: 0 })
        return
      } catch (error) {
        if (attempt === attemptsMax) return onFault({ stage: 'delivery', error })
        await pause(Math.min(delayMsMax, 250 * 2 ** attempt))
      }
    }
  }
  const send = async (): Promise<void> => {
    isSending = true
    await pause(0)
    while (waiting.length > 0) await report(waiting.splice(0, batchMax))
    isSending = false
  }
  return (paymentId) => {
    waiting.push(paymentId)
    if (waiting.length > waitingMax) waiting.shift()
    if (!isSending) void send()
  }
}
