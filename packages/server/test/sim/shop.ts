import { finishRedemption, redeemPayment, reportDelivered } from '../../src/features/payments/delivery/redeem.ts'
import { verify } from '../../src/features/payments/facilitator/routes.ts'
import type { SettleResponse } from '../../src/features/payments/facilitator/schema.ts'
import { settle as settleForServer, withdrawSettlement } from '../../src/features/payments/facilitator/settle.ts'
import { readFunds } from '../../src/features/payments/funds.ts'
import { settlePayment } from '../../src/features/payments/settle.ts'
import type { Ctx } from '../../src/modules.ts'
import { isProblem } from '../../src/platform/errors.ts'
import type { PaymentId } from '../../src/platform/ids.ts'
import type { Chance } from './chance.ts'
import { newPaymentOf } from './new-payment.ts'
import { type Market, type Purchase, resource } from './purchase.ts'

/** The shop's state of a purchase. */
export interface Sale extends Purchase {
  /** Of a payment that our middleware verified; undefined for another server's. */
  paymentId: PaymentId | undefined
  /** The service has accepted it and answered. */
  isTaken: boolean
  /** The number of batches, and of lone transactions, planned before its settlement was requested. */
  requestedAt: { readonly batches: number; readonly alone: number; most?: number } | undefined
  /** The reason in a response that promises that the payment will never be charged. */
  refusal: string | undefined
  /** How often it was served. */
  served: number
  /** Served without a report to the service. */
  isUnreported: boolean
  /** The handler died after settlement and before its response was sent; the payer must retry. */
  isAbandoned: boolean
  redemptionToken: string | undefined
  hasStruck: boolean
  /** Honest, and made while nothing failed: it must be settled. */
  readonly isPromised: boolean
}

/** Checks what shops serve and which answers they get. */
export interface Witness {
  onServed(sale: Sale): void
  /** Called when an open settlement names a transaction whose block shows the money moving. */
  onShown(sale: Sale): void
}

export const saleOf = (bought: Purchase, isPromised = false): Sale => ({
  ...bought,
  paymentId: undefined,
  isTaken: false,
  requestedAt: undefined,
  refusal: undefined,
  served: 0,
  isUnreported: false,
  isAbandoned: false,
  redemptionToken: undefined,
  hasStruck: false,
  isPromised,
})

/** The shop sends the purchase to the service, by its entry point. */
export async function take(ctx: Ctx, market: Market, sale: Sale): Promise<void> {
  if (sale.entryPoint === 'upfront') return
  if (sale.entryPoint === 'facilitator') {
    sale.isTaken = (await verify(ctx, sale.body)).isValid
    return
  }
  const payment = newPaymentOf(ctx, market, sale)
  sale.paymentId = payment.id
  await ctx.recordPayment({ ctx, payment, funds: await readFunds(ctx, payment) })
  sale.isTaken = true
}

/** The shop requests its money, and serves if the answer reports success. */
export async function demand(ctx: Ctx, sale: Sale, witness: Witness, chance: Chance): Promise<void> {
  if (sale.refusal !== undefined || sale.isAbandoned) return
  if (sale.entryPoint === 'facilitator' || sale.entryPoint === 'upfront') return demandForServer(ctx, sale, witness)
  const { paymentId } = sale
  if (paymentId === undefined) return
  if (sale.isUnreported) return report(ctx, sale, paymentId)
  if (sale.served > 0) return
  const settlementToken = ctx.settlementTokens.mint(paymentId)
  const { status, body } = await settlePayment(ctx, { paymentId, settlementToken }, { waitMs: 0 }).catch(
    (error: unknown) => {
      if (isProblem(error, 'settlement-failed') || isProblem(error, 'payment-voided')) sale.refusal = 'ended'
      throw error
    },
  )
  const response = body as { readonly txHash: string | null; readonly redemptionRequested?: boolean }
  if (status !== 200) {
    if (response.txHash !== null) witness.onShown(sale)
    return
  }
  if (sale.entryPoint === 'reporting' && chance.happens(0.3)) {
    sale.isAbandoned = true
    return
  }
  if (response.redemptionRequested === true) return redeem(ctx, sale, witness, { settlementToken, rerun: false })
  serve(sale, witness)
  if (sale.entryPoint === 'reporting') await report(ctx, sale, paymentId)
}

function serve(sale: Sale, witness: Witness): void {
  sale.served += 1
  sale.isUnreported = sale.entryPoint === 'reporting'
  witness.onServed(sale)
}

async function report(ctx: Ctx, sale: Sale, paymentId: PaymentId): Promise<void> {
  sale.isUnreported = true
  await reportDelivered(ctx, [paymentId])
  sale.isUnreported = false
}

/** Also the answer to further requests after the one success: the payment was used. */
const pending = 'settlement_pending'

async function demandForServer(ctx: Ctx, sale: Sale, witness: Witness): Promise<void> {
  if (sale.entryPoint === 'facilitator' && !sale.isTaken) return
  const { signed, body } = sale
  const amount = signed.form === 'permit2' ? signed.amount.toString() : body.paymentRequirements.amount
  const wanted = { ...body, paymentRequirements: { ...body.paymentRequirements, amount } }
  const response = (await settleForServer(ctx, wanted)).body as SettleResponse
  if (response.success) {
    sale.served += 1
    witness.onServed(sale)
  } else if (
    response.errorReason !== pending &&
    !/duplicate|already_used|invalid_nonce/.test(`${response.errorReason} ${response.errorMessage}`)
  ) {
    sale.refusal = `${response.errorReason} ${response.errorMessage}`
  }
}

/** The payer with the credential and its secret requests the answer again, at any process, any number of times. */
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

/** Ends a payment that was never in a transaction; the answer says that its buyer is not charged. */
export async function giveUp(ctx: Ctx, sale: Sale): Promise<void> {
  if (sale.paymentId !== undefined && (await withdrawSettlement(ctx, sale.paymentId))) sale.refusal = 'withdrawn'
}
