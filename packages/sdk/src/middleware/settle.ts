import { ConflictError, PurserError } from '../errors.ts'
import type { Settlement, VerifiedPayment } from '../payments.ts'
import { pause } from '../transport.ts'
import { type OwnAnswer, problemAnswer, receiptOf, unsettledAnswer } from './answers.ts'
import type { Credential } from './credential.ts'
import type { Route, Till } from './options.ts'

/** Purser waits on its side; this only keeps a quick answer from being asked for in a tight loop. */
const askAgainMs = 500

/** `release` with the header that proves the payment, or the answer to give in place of the handler's. */
export type Conclusion =
  | { readonly kind: 'release'; readonly receipt: readonly [name: string, value: string] }
  | { readonly kind: 'withhold'; readonly answer: OwnAnswer }

interface Purchase {
  readonly till: Till
  readonly route: Route
  readonly credential: Credential
  readonly payment: VerifiedPayment
  readonly settlementToken: string | null
}

/**
 * Settles a payment whose handler succeeded. The goods leave when the money moved, or was broadcast and `onPending` is
 * `release`. They stay when settling failed, and also when nobody knows: the payer must not get them for nothing, and
 * is not told that nothing was charged.
 */
export async function conclude(purchase: Purchase): Promise<Conclusion> {
  const { till, route, payment, settlementToken } = purchase
  if (!payment.settlementPending || settlementToken === null) return release(purchase, payment.txHash, false)
  const settleAgain = () => till.purser.payments.settle({ paymentId: payment.paymentId, settlementToken })
  try {
    const settlement = await askUntilKnown(settleAgain, route)
    return release(purchase, settlement.txHash, settlement.status === 'settling')
  } catch (error) {
    if (isFinal(error)) return withhold(unsettledAnswer(purchase.credential, payment.payer, reasonOf(error)))
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

/** The protocol's words have underscores. */
function reasonOf(error: ConflictError): string {
  return error.problem?.reason ?? error.code.replaceAll('-', '_')
}

function release({ credential, payment }: Purchase, txHash: string | null, pending: boolean): Conclusion {
  const receipt = receiptOf(credential, payment.payer, txHash, pending)
  return { kind: 'release', receipt: [credential.responseHeader, receipt] }
}

function withhold(answer: OwnAnswer): Conclusion {
  return { kind: 'withhold', answer }
}
