import { networkByName } from '@purser/protocol'
import type { Ctx } from '../../../platform/ctx.ts'
import { isProblem } from '../../../platform/errors.ts'
import type { PaymentId } from '../../../platform/ids.ts'
import { Reply } from '../../../platform/operation.ts'
import { refused } from '../credential.ts'
import { fail } from '../errors.ts'
import { chargeUpto } from '../permit2/charge.ts'
import { admit } from './admit.ts'
import { declareResource } from './bazaar.ts'
import { objectOf } from './paid-resource.ts'
import { refusalOf } from './refusal.ts'
import type { FacilitatorBody, SettleAnswer } from './schema.ts'
import type { Claim, Reading } from './scheme.ts'
import { schemeOf } from './schemes.ts'
import { findClaimed, getKnownPayment, type KnownPayment, markAnswered } from './store.ts'

/** How long a success is told again to a server that verified first: long enough for every retry, too short to live on old payments. */
const repeatMsMax = 600_000

/**
 * Settles a payment for somebody else's x402 server and waits for the outcome. One that was verified here is told its outcome as often
 * as it is asked within some minutes; one that is first seen here, by a server that settles before it serves, is verified and
 * recorded now, and its success is told to one caller alone. Failures are told to all.
 * Source: x402 specification v2 section 7.2; docs/decisions/0018.
 */
export async function settle(ctx: Ctx, body: FacilitatorBody): Promise<Reply> {
  const network = String(body.paymentRequirements.network ?? '')
  let claim: Claim | undefined
  try {
    const reading = schemeOf(body).read(ctx, body, 'settle')
    claim = reading.claim
    const payment = await findOrAdmit(ctx, body, reading)
    refuseOtherUse(ctx, body, claim, payment)
    await charge(ctx, payment, claim)
    await holdIdempotencyKey(ctx, payment.id)
    const told = await bringToChain(ctx, payment)
    const headers = told.success ? await declareResource(ctx, body) : {}
    return replyWith({ ...told, network, payer: claim.payer }, headers)
  } catch (error) {
    return replyWith(refusedAs(error, network, claim))
  }
}

/** The present state of a settlement, for a repeat with the same Idempotency-Key whose first answer was never given. */
export async function settledBefore(ctx: Ctx, paymentId: string): Promise<Reply> {
  const payment = await getKnownPayment(ctx.db, ctx.tenant, paymentId)
  const { payer } = payment
  const network = networkAs(payment)
  try {
    return replyWith({ ...(await bringToChain(ctx, payment)), network, payer: payer ?? undefined })
  } catch (error) {
    return replyWith({ ...refusedAs(error, network, undefined), payer: payer ?? undefined })
  }
}

/** The payment under this claim, recorded now if nobody has. Of copies that come together one is recorded, and all go on with that one. */
async function findOrAdmit(ctx: Ctx, body: FacilitatorBody, reading: Reading): Promise<KnownPayment> {
  const { claimKey } = reading.claim
  const known = await findClaimed(ctx.db, claimKey)
  if (known !== undefined) return known
  await admit(ctx, body, reading, 'upfront').catch((error: unknown) => {
    if (!isProblem(error, 'duplicate-payment')) throw error
  })
  const recorded = await findClaimed(ctx.db, claimKey)
  // Only the payer's name for the payment was taken: nothing was recorded under this claim.
  if (recorded === undefined) throw fail('duplicate-payment')
  return recorded
}

/**
 * Refuses to settle what was not sold by this request: another organisation's payment, one that bought through another door,
 * other signed parts under the same nonce, and requirements that ask for more or for another account than was verified.
 */
function refuseOtherUse(ctx: Ctx, body: FacilitatorBody, claim: Claim, payment: KnownPayment): void {
  const { organisationId, environment } = ctx.tenant
  const isOwn = payment.organisationId === organisationId && payment.environment === environment
  if (!isOwn || payment.door === 'verify' || payment.paymentFingerprint !== claim.fingerprint)
    throw fail('duplicate-payment')
  if (payment.door === 'facilitator' && settlesFirst(body)) throw fail('duplicate-payment')
  if (payment.payTo.toLowerCase() !== claim.payTo.toLowerCase() || !claim.isPaidBy(payment.rawAmount))
    throw refused('invalid_payment_requirements', { message: 'the requirements are not those that were verified' })
}

/** Whether the server says that it serves on this answer alone, so that a payment which already bought must not buy here. */
function settlesFirst(body: FacilitatorBody): boolean {
  const flow = objectOf(body.paymentRequirements.extra).paymentFlow
  return flow !== undefined && flow !== null && flow !== 'authorization'
}

type Told = Omit<SettleAnswer, 'network' | 'payer'>

/** Says how much is taken of a payment that permits more. Before the key is held: a repeat by key alone does not know how much. */
async function charge(ctx: Ctx, payment: KnownPayment, claim: Claim): Promise<void> {
  if (claim.charge !== undefined && payment.status === 'verified') await chargeUpto(ctx, payment.id, claim.charge)
}

/** Asks for settlement, durably, waits, and says how it went; whoever asks again joins the same settlement. */
async function bringToChain(ctx: Ctx, payment: KnownPayment): Promise<Told> {
  if (payment.status === 'verified') await ctx.settlements.ask(payment.id)
  const outcome = await ctx.settlements.outcome(payment.id, ctx.facilitatorWaitMs)
  const { status, txHash, settledAt, failureReason } = outcome
  if (status === 'settlement_failed' || status === 'voided')
    return { success: false, errorReason: failureReason ?? 'unexpected_settle_error', transaction: '' }
  if (status !== 'settled') return { success: false, errorReason: pending, transaction: txHash ?? '' }
  if (!(await mayTell(ctx, payment, settledAt))) throw fail('duplicate-payment')
  return { success: true, transaction: txHash ?? '', ...(await amountTaken(ctx, payment)) }
}

const pending = 'settlement_pending'

async function mayTell(ctx: Ctx, payment: KnownPayment, settledAt: Date | null): Promise<boolean> {
  const now = ctx.clock.now()
  if (payment.door === 'upfront') return markAnswered(ctx.db, payment.id, now)
  return settledAt !== null && now.getTime() - settledAt.getTime() <= repeatMsMax
}

/** What was really taken, said only where it may be less than what was signed. */
async function amountTaken(ctx: Ctx, payment: KnownPayment): Promise<Pick<Told, 'amount'>> {
  if (payment.scheme !== 'upto') return {}
  const { rawAmount } = await getKnownPayment(ctx.db, ctx.tenant, payment.id)
  return { amount: rawAmount.toString() }
}

function refusedAs(error: unknown, network: string, claim: Claim | undefined): SettleAnswer {
  const refusal = refusalOf(error, claim)
  if (refusal === undefined) throw error
  const { reason: errorReason, message: errorMessage, payer } = refusal
  return { success: false, errorReason, errorMessage, transaction: '', network, payer }
}

function replyWith(answer: SettleAnswer, headers: Readonly<Record<string, string>> = {}): Reply {
  return new Reply(200, answer, headers, answer.errorReason === pending)
}

/** The network by the name that the payment's version has for it. */
function networkAs({ network: name, protocolVersion }: KnownPayment): string {
  const network = networkByName(name)
  return (protocolVersion === 1 ? network?.x402V1Name : network?.caip2) ?? name
}

async function holdIdempotencyKey(ctx: Ctx, paymentId: PaymentId): Promise<void> {
  const handle = ctx.idempotency
  if (handle !== undefined) await ctx.db.tx((tx) => handle.commit(tx, paymentId))
}
