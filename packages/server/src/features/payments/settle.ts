import type { ActingCtx, Tenant } from '../../platform/ctx.ts'
import { batch } from '../../platform/db/batch.ts'
import type { PaymentId } from '../../platform/ids.ts'
import { Reply } from '../../platform/operation.ts'
import { pollUntil } from '../../platform/work/poll-until.ts'
import { isNonceTaken, relays } from '../relayer/index.ts'
import { sanctionedReason } from './credential.ts'
import { fail, failBody } from './errors.ts'
import { refusePayment } from './logs.ts'
import { signReceipt } from './offers/sign.ts'
import type { Ctx, Deps, Settlements } from './ports.ts'
import type { SettleRequest } from './schema.ts'
import { paymentPurpose, recordFailed } from './settlement-outcome.ts'
import { listOutcomes, markingSettling, type SettlementOutcome } from './settlement-store.ts'
import { listNamedPayments, type NamedPayment, type PaymentRow } from './store.ts'

const pollMs = 40

export function createSettlements(deps: Pick<Deps, 'db' | 'clock'>, notify: () => void): Settlements {
  const request = batch<PaymentId, Error | undefined>({ itemsMax: 256, batchesMax: 2 }, async (paymentIds) => {
    const sourceOf = (some: readonly PaymentId[]) => markingSettling(some, deps.clock.now())
    const failures = await relays.enqueueEach(deps.db, paymentPurpose, paymentIds, sourceOf)
    notify()
    return failures
  })
  const readOutcome = batch<PaymentId, SettlementOutcome>({ itemsMax: 512, batchesMax: 1 }, async (paymentIds) => {
    const found = new Map((await listOutcomes(deps.db, paymentIds)).map((outcome) => [outcome.id, outcome]))
    return paymentIds.map((paymentId) => {
      const outcome = found.get(paymentId)
      if (outcome === undefined) throw new Error('a payment disappeared')
      return outcome
    })
  })
  const find = batch<NamedPayment, PaymentRow | undefined>({ itemsMax: 256, batchesMax: 2 }, async (named) => {
    const found = new Map((await listNamedPayments(deps.db, named)).map((payment) => [nameOf(payment), payment]))
    return named.map(({ tenant, paymentId }) => found.get(nameOf({ ...tenant, id: paymentId })))
  })
  return {
    payment: (tenant, paymentId) => find({ tenant, paymentId }),
    request: async (paymentId) => {
      const failure = await request(paymentId)
      if (failure !== undefined) throw failure
    },
    outcome: (paymentId, waitMs) =>
      pollUntil(
        { waitMs, pollMs },
        () => readOutcome(paymentId),
        ({ status }) => isEnded(status),
      ),
  }
}

function nameOf({ organisationId, environment, id }: Tenant & { readonly id: PaymentId }): string {
  return `${organisationId}/${environment}/${id}`
}

/**
 * Requests the settlement of a verified payment. A payment fails if the service is sending its nonce for something else (a
 * transfer of its own wallets), because its own transaction can then never settle it.
 */
export async function requestSettlement(
  ctx: ActingCtx & Pick<Ctx, 'db' | 'metrics' | 'settlements'>,
  paymentId: PaymentId,
): Promise<void> {
  await ctx.settlements.request(paymentId).catch((error: unknown) => {
    if (!isNonceTaken(error)) throw error
    return failVerified(ctx, paymentId, 'invalid_exact_evm_nonce_already_used')
  })
}

/** Requests settlement. A payment whose payer or receiver was sanctioned after it was verified fails and moves no money. */
function requestUnlessSanctioned(ctx: Ctx, payment: PaymentRow): Promise<void> {
  const reason = sanctionedReason(ctx, payment)
  return reason === undefined ? requestSettlement(ctx, payment.id) : failSanctioned(ctx, payment.id, reason)
}

/**
 * Ends a payment of a sanctioned party whose settlement nobody has requested yet. Its relay is withdrawn before it is ever sent: the relayer then
 * keeps reading the chain, because anybody who has the signature can still move the money.
 */
async function failSanctioned(
  ctx: ActingCtx & Pick<Ctx, 'db' | 'metrics'>,
  paymentId: PaymentId,
  reason: string,
): Promise<void> {
  try {
    await ctx.db.tx(async (tx) => {
      await relays.enqueue(tx, paymentPurpose, markingSettling([paymentId], ctx.clock.now()))
      if (!(await relays.withdraw(tx, paymentPurpose, paymentId))) return
      await recordFailed(ctx, tx, [{ id: paymentId, status: 'settlement_failed', reason }])
    })
  } catch (error) {
    if (!isNonceTaken(error)) throw error
  }
  await failVerified(ctx, paymentId, reason)
}

/** Ends a payment whose settlement nobody has requested yet. */
function failVerified(
  ctx: ActingCtx & Pick<Ctx, 'db' | 'metrics'>,
  paymentId: PaymentId,
  reason: string,
): Promise<void> {
  return ctx.db.tx(async (tx) => {
    await recordFailed(ctx, tx, [{ id: paymentId, status: 'settlement_failed', reason }], 'verified')
  })
}

function isEnded(status: SettlementOutcome['status']): boolean {
  return status === 'settled' || status === 'settlement_failed' || status === 'voided'
}

/**
 * Settles a verified payment. The request is stored before anything is sent, a repeated request joins the same settlement, and
 * every caller gets the one outcome: settled, failed, or 202 if it is unknown after `waitMs`.
 */
export async function settlePayment(
  ctx: Ctx,
  request: SettleRequest,
  { waitMs }: { readonly waitMs: number },
): Promise<Reply> {
  const payment = await ctx.settlements.payment(ctx.tenant, request.paymentId)
  if (payment === undefined) return refusePayment(ctx.db, ctx.tenant, request.paymentId, failBody('payment-not-found'))
  if (!ctx.settlementTokens.check(payment.id, request.settlementToken)) throw failBody('settlement-token-invalid')
  await ctx.idempotency?.commitAlone(ctx.db, payment.id)
  return present(ctx, payment, waitMs)
}

async function present(ctx: Ctx, payment: PaymentRow, waitMs: number): Promise<Reply> {
  if (payment.status === 'verified') await requestUnlessSanctioned(ctx, payment)
  if (isEnded(payment.status))
    return settlementReply(ctx, { ...payment, inBlock: true, redemptionRequested: payment.redemptionUntil !== null })
  return settlementReply(ctx, { ...payment, ...(await ctx.settlements.outcome(payment.id, waitMs)) })
}

/**
 * Returns the present state of a settlement, for a repeat whose first response was never sent. The process may have died after it
 * took the key and before it stored the request, so settlement of a payment that is only verified is requested now: 202 always
 * means that it will be settled.
 */
export async function settlementState(ctx: Ctx, paymentId: string): Promise<Reply> {
  const payment = await ctx.settlements.payment(ctx.tenant, paymentId as PaymentId)
  if (payment === undefined) throw failBody('payment-not-found')
  return present(ctx, payment, 0)
}

/**
 * Returns the response for a settlement. While the outcome is open, a hash means that a block shows the money moving. A
 * transaction that was only sent may still fail: the payer can spend the money first or cancel the authorization. Callers deliver
 * goods when they see a hash.
 */
async function settlementReply(
  ctx: Pick<Ctx, 'baseUrl' | 'serviceSeal'>,
  payment: PaymentRow & Pick<SettlementOutcome, 'inBlock' | 'redemptionRequested'>,
): Promise<Reply> {
  const { txHash, settledAt, redemptionRequested } = payment
  if (payment.status === 'settled')
    return new Reply(200, { txHash, settledAt, redemptionRequested, receipt: await signReceipt(ctx, payment) })
  if (payment.status === 'settlement_failed') throw fail('settlement-failed', { reason: payment.failureReason })
  if (payment.status === 'voided') throw fail('payment-voided', { reason: payment.failureReason })
  return new Reply(202, { status: 'settling', txHash: payment.inBlock ? payment.txHash : null })
}
