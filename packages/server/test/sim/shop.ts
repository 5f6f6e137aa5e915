import { finishRedemption, redeemPayment, reportDelivered } from '../../src/features/payments/delivery/redeem.ts'
import type { SettleAnswer } from '../../src/features/payments/facilitator/schema.ts'
import { settle as settleForServer } from '../../src/features/payments/facilitator/settle.ts'
import { verify } from '../../src/features/payments/facilitator/verify.ts'
import { withdrawSettlement } from '../../src/features/payments/facilitator/withdraw.ts'
import { readFunds } from '../../src/features/payments/funds.ts'
import { settlePayment } from '../../src/features/payments/settle.ts'
import type { Ctx } from '../../src/platform/ctx.ts'
import { isProblem } from '../../src/platform/errors.ts'
import type { PaymentId } from '../../src/platform/ids.ts'
import type { Chance } from './chance.ts'
import { newPaymentOf } from './new-payment.ts'
import { type Market, type Purchase, resource } from './purchase.ts'

/** What a shop learned of a purchase, and what it did. */
export interface Sale extends Purchase {
  /** Of a payment that our middleware verified; of another server's none. */
  paymentId: PaymentId | undefined
  /** The service took it in and said so. */
  isTaken: boolean
  /** When so many batches, and so many transactions of one relay, had been planned, somebody requested its settlement. */
  askedAt: { readonly batches: number; readonly alone: number; most?: number } | undefined
  /** With what words somebody was informed that it will never be charged. */
  refusal: string | undefined
  /** Times that the goods left. */
  served: number
  /** The goods left, and the service does not know. */
  isUnreported: boolean
  /** The handler died after it settled and before its answer left; the payer has to come back. */
  isAbandoned: boolean
  redemptionToken: string | undefined
  hasStruck: boolean
  /** Honest, and made when all was well: it is settled. */
  readonly isPromised: boolean
}

/** What watches over what shops hand out and what they hear. */
export interface Witness {
  onServed(sale: Sale): void
  /** A settlement that is open names a transaction whose block shows the money moving. */
  onShown(sale: Sale): void
}

export const saleOf = (bought: Purchase, isPromised = false): Sale => ({
  ...bought,
  paymentId: undefined,
  isTaken: false,
  askedAt: undefined,
  refusal: undefined,
  served: 0,
  isUnreported: false,
  isAbandoned: false,
  redemptionToken: undefined,
  hasStruck: false,
  isPromised,
})

/** The shop takes the purchase to the service, by its door. */
export async function take(ctx: Ctx, market: Market, sale: Sale): Promise<void> {
  if (sale.door === 'upfront') return
  if (sale.door === 'facilitator') {
    sale.isTaken = (await verify(ctx, sale.body)).isValid
    return
  }
  const payment = newPaymentOf(ctx, market, sale)
  sale.paymentId = payment.id
  await ctx.recordPayment({ ctx, payment, funds: await readFunds(ctx, payment) })
  sale.isTaken = true
}

/** The shop wants its money, and serves where it is said to be there. */
export async function demand(ctx: Ctx, sale: Sale, witness: Witness, chance: Chance): Promise<void> {
  if (sale.refusal !== undefined || sale.isAbandoned) return
  if (sale.door === 'facilitator' || sale.door === 'upfront') return demandForServer(ctx, sale, witness)
  const { paymentId } = sale
  if (paymentId === undefined) return
  if (sale.isUnreported) return report(ctx, sale, paymentId)
  if (sale.served > 0) return
  const settlementToken = ctx.settlementTokens.mint(paymentId)
  const { status, body } = await settlePayment(ctx, { paymentId, settlementToken }, true).catch((error: unknown) => {
    if (isProblem(error, 'settlement-failed') || isProblem(error, 'payment-voided')) sale.refusal = 'ended'
    throw error
  })
  const answer = body as { readonly txHash: string | null; readonly redemptionRequested?: boolean }
  if (status !== 200) {
    if (answer.txHash !== null) witness.onShown(sale)
    return
  }
  if (sale.door === 'reporting' && chance.happens(0.3)) {
    sale.isAbandoned = true
    return
  }
  if (answer.redemptionRequested === true) return redeem(ctx, sale, witness, { settlementToken, rerun: false })
  serve(sale, witness)
  if (sale.door === 'reporting') await report(ctx, sale, paymentId)
}

function serve(sale: Sale, witness: Witness): void {
  sale.served += 1
  sale.isUnreported = sale.door === 'reporting'
  witness.onServed(sale)
}

async function report(ctx: Ctx, sale: Sale, paymentId: PaymentId): Promise<void> {
  sale.isUnreported = true
  await reportDelivered(ctx, [paymentId])
  sale.isUnreported = false
}

/** Also what whoever asks after the one success hears: that the payment was used. */
const pending = 'settlement_pending'

async function demandForServer(ctx: Ctx, sale: Sale, witness: Witness): Promise<void> {
  if (sale.door === 'facilitator' && !sale.isTaken) return
  const { signed, body } = sale
  const amount = signed.form === 'permit2' ? signed.amount.toString() : body.paymentRequirements.amount
  const wanted = { ...body, paymentRequirements: { ...body.paymentRequirements, amount } }
  const answer = (await settleForServer(ctx, wanted)).body as SettleAnswer
  if (answer.success) {
    sale.served += 1
    witness.onServed(sale)
  } else if (
    answer.errorReason !== pending &&
    !/duplicate|already_used|invalid_nonce/.test(`${answer.errorReason} ${answer.errorMessage}`)
  ) {
    sale.refusal = `${answer.errorReason} ${answer.errorMessage}`
  }
}

/** Whoever has the credential and its secret asks for the answer again: the payer, at any process, as often as it likes. */
export async function redeem(
  ctx: Ctx,
  sale: Sale,
  witness: Witness,
  own: { readonly settlementToken?: string; readonly rerun: boolean },
): Promise<void> {
  const { paymentId, credential, redemptionToken } = sale
  if (paymentId === undefined) return
  if (redemptionToken !== undefined) {
    sale.redemptionToken = undefined
    await finishRedemption(ctx, paymentId, redemptionToken)
    sale.served += 1
    witness.onServed(sale)
    return
  }
  const request = { protocol: 'x402', credential, resource, method: 'GET', digest: undefined, ...own } as const
  const granted = await redeemPayment(ctx, request)
  sale.redemptionToken = granted.redemptionToken
}

/** Ends it where it was never in a transaction: its buyer then learns that it costs nothing. */
export async function giveUp(ctx: Ctx, sale: Sale): Promise<void> {
  if (sale.paymentId !== undefined && (await withdrawSettlement(ctx, sale.paymentId))) sale.refusal = 'withdrawn'
}
