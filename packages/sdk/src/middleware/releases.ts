import type { Purser } from '../client.ts'
import { ConflictError } from '../errors.ts'
import type { SettleRequest } from '../payments.ts'
import type { Fault } from './faults.ts'

const atOnceMax = 8
/** Most payments that wait. Beyond it the oldest are dropped; Purser voids them after `VERIFIED_SECONDS_MAX`. */
const waitingMax = 10_000

/** Releases a verified payment that is not sold. Never throws or waits. */
export type ReleasePayment = (payment: SettleRequest) => void

/**
 * Releases payments at Purser after the responses were sent, so that payments that are not charged do not use up the
 * monthly quota.
 */
export function openReleases(purser: Pick<Purser, 'payments'>, onFault: (fault: Fault) => void): ReleasePayment {
  const waiting: SettleRequest[] = []
  let running = 0
  const release = async ({ paymentId, settlementToken }: SettleRequest): Promise<void> => {
    try {
      await purser.payments.release(paymentId, { settlementToken })
    } catch (error) {
      // A payment in settlement was sold by another caller.
      if (!(error instanceof ConflictError)) onFault({ stage: 'release', error })
    }
  }
  const run = async (): Promise<void> => {
    running += 1
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) await release(next)
    running -= 1
  }
  return (payment) => {
    waiting.push(payment)
    if (waiting.length > waitingMax) waiting.shift()
    if (running < atOnceMax) void run()
  }
}
