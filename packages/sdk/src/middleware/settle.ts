import { ConflictError, PurserError } from '../errors.ts'
import type { Settlement, VerifiedPayment } from '../payments.ts'
import { pause } from '../transport.ts'
import { type OwnAnswer, problemAnswer } from './answers.ts'
import type { Credential } from './credential.ts'
import type { Route, Till } from './options.ts'
import { type Moved, receiptOf } from './receipts.ts'

/** Purser waits on its side; this only keeps a quick answer from being asked for in a tight loop. */
const askAgainMs = 500

/** `release` with the headers that the payer gets for his payment, or the answer to give in place of the handler's. */
export type Conclusion =
  | {
      readonly kind: 'release'
      readonly headers: readonly (readonly [name: string, value: string])[]
      /** Call with the answer as it leaves, where it is given: a repeat of the same purchase is answered with it. */
      readonly keep: ((answer: OwnAnswer) => void) | undefined
    }
  | { readonly kind: 'withhold'; readonly answer: OwnAnswer }

interface Purchase {
  readonly till: Till
  readonly route: Route
  readonly credential: Credential
  readonly payment: VerifiedPayment
  readonly settlementToken: string
  /** The answer for a payment that is known not to have been settled. */
  readonly unsettled: (reason: string) => Promise<OwnAnswer>
  readonly keep: ((answer: OwnAnswer) => void) | undefined
}

/**
 * Settles a payment whose handler succeeded. The goods leave when the money moved, or is in a block and `onPending` is
 * `release`. They stay when settling failed, and also when nobody knows: the payer must not get them for nothing, and
 * is not told that nothing was charged.
 */
export async function conclude(purchase: Purchase): Promise<Conclusion> {
  const { till, route, payment, settlementToken } = purchase
  if (!payment.settlementPending) return release(purchase, { ...payment, pending: false })
  const settleAgain = () => till.purser.payments.settle({ paymentId: payment.paymentId, settlementToken })
  try {
    const settlement = await askUntilKnown(settleAgain, route)
    const { txHash } = settlement
    if (settlement.status === 'settling') return release(purchase, { txHash, settledAt: null, pending: true })
    const { settledAt, receipt: signed } = settlement
    return release(purchase, { txHash, settledAt, signed, pending: false })
  } catch (error) {
    if (isFinal(error)) return withhold(await purchase.unsettled(reasonOf(error, purchase.credential)))
    till.onFault({ stage: 'settle', error, payment, settleAgain })
    return withhold(problemAnswer('settlement-unavailable'))
  }
}

async function askUntilKnown(settle: () => Promise<Settlement>, route: Route): Promise<Settlement> {
  const deadline = Date.now() + route.holdMsMax
  while (true) {
    const settlement = await settle()
    if (settlement.status === 'settled') return settlement
    if (route.onPending === 'release' && settlement.txHash !== null) return settlement
    if (Date.now() >= deadline) {
      throw new PurserError('The settlement is still pending.', { code: 'settlement-pending' })
    }
    await pause(askAgainMs)
  }
}

function isFinal(error: unknown): error is ConflictError {
  return error instanceof ConflictError && (error.code === 'settlement-failed' || error.code === 'payment-voided')
}

/** The words of x402 have underscores, those of MPP hyphens. */
function reasonOf({ problem, code }: ConflictError, { protocol }: Credential): string {
  return problem?.reason ?? (protocol === 'x402' ? code.replaceAll('-', '_') : code)
}

function release({ credential, payment, keep }: Purchase, moved: Moved): Conclusion {
  return { kind: 'release', headers: [receiptOf(credential, payment, moved)], keep }
}

function withhold(answer: OwnAnswer): Conclusion {
  return { kind: 'withhold', answer }
}
