import { chainNameOf, checksumAddress, encodeJsonBase64, type JsonObject, networkByName } from '@purser/protocol'
import type { ActingCtx } from '../../../platform/ctx.ts'
import { callerId } from '../../../platform/ctx.ts'
import { isProblem } from '../../../platform/errors.ts'
import { logIdOf, newId, type PaymentId } from '../../../platform/ids.ts'
import { Reply } from '../../../platform/operation.ts'
import { isServiceAddress } from '../../chains/index.ts'
import { relays } from '../../relayer/index.ts'
import { refuseBelowMinimum, refused, refuseSanctioned } from '../credential.ts'
import { fail } from '../errors.ts'
import { schemeOf } from '../methods/index.ts'
import type { CheckedPayment, ParsedRequest, ReadCredential } from '../methods/method.ts'
import { namePayment, type PaymentName } from '../new-payment.ts'
import type { Ctx } from '../ports.ts'
import { requestSettlement } from '../settle.ts'
import { paymentPurpose, recordFailed } from '../settlement-outcome.ts'
import type { SettlementOutcome } from '../settlement-store.ts'
import type { NewPayment } from '../store.ts'
import {
  findClaimed,
  getKnownPayment,
  type KnownPayment,
  markSuccessReturned,
  upsertResource,
} from './discovery-store.ts'
import { extensionsOf, objectOf, type PaidResource, readDeclaration, resourceOf } from './paid-resource.ts'
import { refusalOf, refuseUnstorableText } from './refusal.ts'
import type { FacilitatorBody, SettleResponse } from './schema.ts'

/**
 * Settles a payment for an external x402 server and waits for the outcome. A payment that was not verified here before, by a
 * server that settles before it serves, is verified and recorded now. Success is returned to one call only; a server that
 * received `settlement_pending` gets it by repeating the call. Failures are returned to every call.
 * Source: x402 specification v2 section 7.2; docs/decisions/0070.
 */
export async function settle(ctx: Ctx, body: FacilitatorBody): Promise<Reply> {
  const network = String(body.paymentRequirements.network ?? '')
  let claim: ReadCredential | undefined
  try {
    refuseUnstorableText(body)
    const reading = schemeOf(body).read(ctx, body, 'settle')
    claim = reading.claim
    const payment = await findOrAdmit(ctx, body, reading)
    refuseOtherUse(ctx, body, claim, payment)
    await charge(ctx, payment, claim)
    await ctx.idempotency?.commitAlone(ctx.db, payment.id)
    const reported = await bringToChain(ctx, payment, ctx.idempotency?.key)
    const headers = reported.success ? await declareResource(ctx, body) : {}
    return replyWith({ ...reported, network, payer: claim.payer }, headers)
  } catch (error) {
    return replyWith(refusedAs(error, network, claim))
  }
}

/** Returns the present state of a settlement, for a repeat with the same Idempotency-Key whose first response was never sent. */
export async function settledBefore(ctx: Ctx, paymentId: string, key: string): Promise<Reply> {
  const payment = await getKnownPayment(ctx.db, ctx.tenant, paymentId)
  const { payer } = payment
  const network = networkAs(payment)
  try {
    return replyWith({ ...(await bringToChain(ctx, payment, key)), network, payer: payer ?? undefined })
  } catch (error) {
    return replyWith({ ...refusedAs(error, network, undefined), payer: payer ?? undefined })
  }
}

/**
 * Returns the payment under this claim, and records it if it is new. Of copies that arrive together one is recorded, and all
 * continue with that one.
 */
async function findOrAdmit(ctx: Ctx, body: FacilitatorBody, reading: ParsedRequest): Promise<KnownPayment> {
  const { claimKey } = reading.claim
  const known = await findClaimed(ctx.db, claimKey)
  if (known !== undefined) return known
  await admit(ctx, body, reading, 'upfront').catch((error: unknown) => {
    if (!isProblem(error, 'duplicate-payment')) throw error
  })
  const recorded = await findClaimed(ctx.db, claimKey)
  // Only the payment identifier was taken: nothing was recorded under this claim.
  if (recorded === undefined) throw fail('duplicate-payment')
  return recorded
}

/**
 * Refuses a payment that does not belong to this request: a payment of another organisation or entry point, other
 * signed parts under the same nonce, or requirements with another scheme, a higher amount, another token or another account than
 * were verified. The claim of a permit does not name its token, since Permit2's nonces belong to the owner.
 */
function refuseOtherUse(
  ctx: Pick<Ctx, 'tenant'>,
  body: FacilitatorBody,
  claim: ReadCredential,
  payment: KnownPayment,
): void {
  const { organisationId, environment } = ctx.tenant
  const isOwn = payment.organisationId === organisationId && payment.environment === environment
  if (!isOwn || payment.entryPoint === 'verify' || payment.paymentFingerprint !== claim.fingerprint)
    throw fail('duplicate-payment')
  if (payment.entryPoint === 'facilitator' && settlesFirst(body)) throw fail('duplicate-payment')
  const isOfToken = payment.asset.toLowerCase() === claim.token.address.toLowerCase()
  const isSame = payment.scheme === claim.scheme && payment.payTo.toLowerCase() === claim.payTo.toLowerCase()
  if (!isOfToken || !isSame || !claim.isPaidBy(payment.rawAmount))
    throw refused('invalid_payment_requirements', { message: 'the requirements are not those that were verified' })
}

/** Whether the server delivers on this response alone, so that a payment that was already used must be refused. */
function settlesFirst(body: FacilitatorBody): boolean {
  const flow = objectOf(body.paymentRequirements.extra).paymentFlow
  return flow !== undefined && flow !== null && flow !== 'authorization'
}

type Reported = Omit<SettleResponse, 'network' | 'payer'>

/**
 * Sets the amount to take of a payment that permits more. It runs before the key is committed, because a repeat by key does not
 * know the amount.
 */
async function charge(
  ctx: Pick<Ctx, 'screening' | 'tenant'>,
  payment: KnownPayment,
  claim: ReadCredential,
): Promise<void> {
  if (claim.charge === undefined || payment.status !== 'verified') return
  refuseSanctioned(ctx, { ...payment, protocol: 'x402' })
  await claim.charge(payment.id)
}

/** Stores the request for settlement, waits, and returns the outcome. Further calls join the same settlement. */
async function bringToChain(ctx: Ctx, payment: KnownPayment, key: string | undefined): Promise<Reported> {
  if (payment.status === 'verified') {
    refuseSanctioned(ctx, { ...payment, protocol: 'x402' })
    await requestSettlement(ctx, payment.id)
  }
  const { status, txHash, carrierHash, failureReason } = await outcomeOf(ctx, payment.id)
  if (status === 'settlement_failed' || status === 'voided')
    return { success: false, errorReason: failureReason ?? 'unexpected_settle_error', transaction: '' }
  if (status !== 'settled') return { success: false, errorReason: pending, transaction: txHash ?? carrierHash ?? '' }
  const isFirst = await markSuccessReturned(ctx.db, payment.id, { now: ctx.clock.now(), key: key ?? null })
  if (!isFirst) throw fail('duplicate-payment')
  return { success: true, transaction: txHash ?? '', ...(await amountTaken(ctx, payment)) }
}

const pending = 'settlement_pending'
/** Maximum milliseconds until a transaction that was being signed at the end of the wait has its hash. */
const signMsMax = 3_000

/**
 * Returns the outcome, or what is known when the wait ends. A settlement that no transaction carries by then is withdrawn:
 * servers retry only with a hash, so a payment without one would be charged after its buyer was refused.
 */
async function outcomeOf(
  ctx: ActingCtx & Pick<Ctx, 'db' | 'facilitatorWaitMs' | 'metrics' | 'settlements'>,
  paymentId: PaymentId,
): Promise<SettlementOutcome> {
  const outcome = await ctx.settlements.outcome(paymentId, ctx.facilitatorWaitMs)
  if (outcome.status !== 'settling' || (outcome.txHash ?? outcome.carrierHash) !== null) return outcome
  if (await withdrawSettlement(ctx, paymentId)) return ctx.settlements.outcome(paymentId, 0)
  return ctx.settlements.outcome(paymentId, signMsMax)
}

/** Returns the amount that was taken, only where it may be less than what was signed. */
async function amountTaken(ctx: Pick<Ctx, 'db' | 'tenant'>, payment: KnownPayment): Promise<Pick<Reported, 'amount'>> {
  if (payment.scheme !== 'upto') return {}
  const { rawAmount } = await getKnownPayment(ctx.db, ctx.tenant, payment.id)
  return { amount: rawAmount.toString() }
}

function refusedAs(error: unknown, network: string, claim: ReadCredential | undefined): SettleResponse {
  const refusal = refusalOf(error, claim)
  if (refusal === undefined) throw error
  const { reason: errorReason, message: errorMessage, payer } = refusal
  return { success: false, errorReason, errorMessage, transaction: '', network, payer }
}

function replyWith(response: SettleResponse, headers: Readonly<Record<string, string>> = {}): Reply {
  return new Reply(200, response, headers, { isOpen: response.errorReason === pending })
}

/** Returns the network's name in the payment's protocol version. */
function networkAs({ network: name, protocolVersion }: KnownPayment): string {
  const network = networkByName(name)
  return (protocolVersion === 1 ? network?.x402V1Name : network?.caip2) ?? name
}

/** Most resources that one organisation may list per environment. */
const resourcesMax = 1_000

/**
 * Lists the resource that a paid request declares (x402 extension bazaar), and returns the header that reports the result to the
 * resource server. The declaration is the payer's copy of a challenge, so an invalid declaration or a failure of the list never
 * fails the settlement.
 */
async function declareResource(
  ctx: Pick<Ctx, 'clock' | 'db' | 'log' | 'requestId' | 'tenant'>,
  body: FacilitatorBody,
): Promise<Record<string, string>> {
  const declared = readDeclaration(body)
  if (declared === undefined) return {}
  if ('rejectedReason' in declared)
    return responseHeader({ status: 'rejected', rejectedReason: declared.rejectedReason })
  try {
    const isListed = await upsertResource(ctx.db, ctx.tenant, { ...declared, now: ctx.clock.now(), resourcesMax })
    if (isListed) return responseHeader({ status: 'success' })
    return responseHeader({ status: 'rejected', rejectedReason: 'too_many_resources' })
  } catch (error) {
    ctx.log.warn({ err: error, requestId: ctx.requestId }, 'a paid resource could not be listed')
    return {}
  }
}

/** Builds the `EXTENSION-RESPONSES` header (x402 specification v2, transport HTTP): base64 of JSON by extension. */
function responseHeader(bazaar: JsonObject): Record<string, string> {
  return { 'extension-responses': encodeJsonBase64({ bazaar }) }
}

/** The failure reason of a settlement that no transaction carried. */
const withdrawnReason = 'settlement_withdrawn'

/**
 * Ends a settlement permanently unless a transaction that may still be mined carries it, and returns whether it ended it. It takes
 * the relay's lock, as the relayer does before it plans, so that a buyer who received the failure is never charged afterwards.
 */
export function withdrawSettlement(
  ctx: ActingCtx & Pick<Ctx, 'db' | 'metrics'>,
  paymentId: PaymentId,
): Promise<boolean> {
  return ctx.db.tx(async (tx) => {
    if (!(await relays.withdraw(tx, paymentPurpose, paymentId))) return false
    await recordFailed(ctx, tx, [{ id: paymentId, status: 'voided', reason: withdrawnReason }])
    return true
  })
}

/**
 * Admits a payment: refuses it, cheapest checks first, or records it once for all entry points and organisations. Throws the
 * protocol's refusal, the problem `duplicate-payment` if the claim is taken, and the problems of limits and nodes.
 */
export async function admit(
  ctx: Ctx,
  body: FacilitatorBody,
  { claim, check }: ParsedRequest,
  entryPoint: 'facilitator' | 'upfront',
): Promise<void> {
  await ctx.gasPrices.recentReads([claim.network])
  const judged = check()
  if (judged.rawAmount === 0n) throw refused('invalid_payment_requirements', { message: 'the amount is zero' })
  refuseBelowMinimum(ctx, claim.network, claim.token, judged.rawAmount)
  const name = await namePayment(ctx, extensionsOf(body), claim)
  const payTo = checksumAddress(claim.payTo, ctx.signatures.keccak)
  if (isServiceAddress(ctx, payTo))
    throw refused('invalid_payment_requirements', { message: 'payTo is a token or an address of this service' })
  const wallet = await ctx.receivingWallets.findByAddress(ctx.tenant, claim.network, payTo)
  if (wallet?.isRetired === true)
    throw refused('invalid_payment_requirements', { message: 'payTo is a wallet that is retired' })
  if (wallet?.isActive === false)
    throw refused('invalid_payment_requirements', { message: 'payTo is a wallet that screening flagged' })
  const draft: Omit<NewPayment, 'settlement'> = {
    ...newRow(ctx, claim, judged),
    ...name,
    walletId: wallet?.id ?? null,
    chain: wallet?.chain ?? chainNameOf(claim.network),
    ...resourceOf(body),
    payTo,
    entryPoint,
  }
  const { funds, settlement } = await judged.refuseByChain(claim.claimKey)
  await ctx.recordPayment({ ctx, payment: { ...draft, settlement }, funds }).catch(async (error: unknown) => {
    // Of two payments that use one identifier at the same time, the second is refused because of the identifier.
    if (isProblem(error, 'duplicate-payment')) await namePayment(ctx, extensionsOf(body), claim)
    throw error
  })
}

function newRow(
  ctx: Pick<Ctx, 'actor' | 'clock' | 'random'>,
  claim: ReadCredential,
  judged: CheckedPayment,
): Omit<
  NewPayment,
  keyof PaidResource | 'walletId' | 'chain' | 'entryPoint' | 'payTo' | 'settlement' | keyof PaymentName
> {
  const { network, token } = claim
  const id = newId('pay', ctx)
  return {
    id,
    logId: logIdOf(id),
    apiKeyId: callerId(ctx.actor),
    protocol: 'x402',
    protocolVersion: claim.x402Version,
    claimKey: claim.claimKey,
    scheme: judged.scheme,
    challengeId: null,
    network: network.name,
    token: token.symbol,
    asset: token.address,
    decimals: token.decimals,
    rawAmount: judged.rawAmount,
    payer: claim.payer,
    validBefore: judged.validBefore,
    method: null,
    status: 'verified',
    txHash: null,
    settlingAt: null,
    settledAt: null,
    delivery: null,
    createdAt: ctx.clock.now(),
  }
}
