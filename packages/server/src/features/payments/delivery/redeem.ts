import { hash } from 'node:crypto'
import {
  decodePayment,
  hexToBytes,
  networkByX402V1Name,
  parseEcdsa,
  parseMppCredential,
  recoverAddress,
  redemptionHash,
  sameAddress,
  sameDigest,
} from '@purser/protocol'
import type { z } from 'zod'
import { equalInConstantTime } from '../../../platform/constant-time.ts'
import type { Tx } from '../../../platform/db/db.ts'
import type { PaymentId } from '../../../platform/ids.ts'
import { isStub } from '../credential.ts'
import { fail } from '../errors.ts'
import { getPayment } from '../logs.ts'
import { shownIdentifier } from '../new-payment.ts'
import type { Ctx } from '../ports.ts'
import { responseOf } from '../record.ts'
import type { Payment } from '../schema.ts'
import { findPayment } from '../store.ts'
import type { RedeemRequest, Redemption } from './schema.ts'
import {
  announceRedemption,
  grantRedemption,
  lockRedeemable,
  markDelivered,
  markRedeemed,
  markUndelivered,
  type PaymentKey,
  type RedeemableRow,
} from './store.ts'

/** Grace period in which the first handler may still deliver its response after another process requests to redeem the payment. */
export const graceMs = 30_000
/** Milliseconds for which a redemption has the exclusive right to deliver the response. */
const leaseMs = 60_000
/** Milliseconds after which to retry for a payment that is not settled yet. */
const openMs = 5_000
/** Milliseconds for which a middleware keeps an undelivered response by default. */
const keptMs = 1_800_000
const rerunsMax = 2
const safeMethods = ['GET', 'HEAD']

/** The decision about a request to redeem a payment. */
type RedeemVerdict = { readonly kind: 'grant' } | { readonly kind: 'announce' } | NotNow

type NotNow =
  | { readonly kind: 'refuse' }
  | { readonly kind: 'lost' }
  | { readonly kind: 'wait'; readonly waitMs: number }

/** The requester of a redemption. */
interface Redeemer {
  readonly method: string
  readonly isRerun: boolean
  /** Whether this process still has the response of the first run. */
  readonly isFirst: boolean
}

/**
 * Decides whether a payment may be redeemed now. Before the first request the first handler may deliver its response at any time,
 * so the first request of another process only starts a grace period, and the next request after it is granted. While
 * the handler may still run or its response may still be stored, the refusal is temporary, because a payer who is refused permanently pays again.
 */
function redeemVerdict(row: RedeemableRow, { method, isRerun, isFirst }: Redeemer): RedeemVerdict {
  const { status, delivery, deliveredAt, settledMs, refundedRaw, redemptionToken, redemptionMs, reruns } = row
  if (isOpen(row)) return { kind: 'wait', waitMs: openMs }
  if (status !== 'settled' || delivery === null || deliveredAt !== null || refundedRaw > 0n) return { kind: 'refuse' }
  if (isRerun && (!safeMethods.includes(method) || reruns >= rerunsMax))
    return (settledMs ?? 0) < keptMs ? { kind: 'wait', waitMs: graceMs } : { kind: 'lost' }
  if (isFirst && redemptionToken === null) return { kind: 'grant' }
  if (redemptionMs === null) return { kind: 'announce' }
  return redemptionMs > 0 ? { kind: 'wait', waitMs: redemptionMs } : { kind: 'grant' }
}

/** Whether the payment may still be settled for the handler that ran first. */
function isOpen({ status }: RedeemableRow): boolean {
  return status === 'verified' || status === 'settling'
}

/**
 * Gives one caller at a time the right to deliver the response of a payment that was settled and never delivered. The payer must
 * present a secret that does not appear on chain, for the request that was paid for.
 */
export async function redeemPayment(ctx: Ctx, request: RedeemRequest): Promise<z.input<typeof Redemption>> {
  const token = Buffer.from(ctx.random.bytes(24)).toString('base64url')
  const outcome = await ctx.db.tx((tx) => decide(ctx, tx, request, token))
  if (outcome.kind === 'granted') return redemptionResponse(ctx, outcome.paymentId, token)
  if (outcome.kind === 'refuse') throw fail('payment-not-redeemable')
  if (outcome.kind === 'lost') throw fail('answer-lost')
  throw fail('delivery-in-progress', { retryAfterSeconds: Math.ceil(outcome.waitMs / 1_000) })
}

type RedeemOutcome = NotNow | { readonly kind: 'granted'; readonly paymentId: PaymentId }

async function decide(
  ctx: Pick<Ctx, 'clock' | 'idempotency' | 'settlementTokens' | 'signatures' | 'tenant'>,
  tx: Tx,
  request: RedeemRequest,
  token: string,
): Promise<RedeemOutcome> {
  const { settlementToken, paymentId, method, rerun: isRerun } = request
  const shown = shownBy(ctx, request)
  const key = paymentId === undefined ? shown?.key : { id: paymentId }
  const row = key && (await lockRedeemable(tx, ctx.tenant, key))
  if (row === undefined) return { kind: 'refuse' }
  const isFirst = settlementToken !== undefined && ctx.settlementTokens.check(row.id, settlementToken)
  const isProven = paymentId === undefined ? shown !== undefined && isProvenBy(ctx, row, shown, request) : isFirst
  if (!isProven)
    return isSameRequest(row, request) && isOpen(row) ? { kind: 'wait', waitMs: openMs } : { kind: 'refuse' }
  const verdict = redeemVerdict(row, { method, isRerun, isFirst })
  if (verdict.kind === 'grant') {
    await grantRedemption(tx, row.id, { token, leaseMs, isRerun })
    await ctx.idempotency?.commit(tx, `${row.id} ${digestOf(token)}`)
    return { kind: 'granted', paymentId: row.id }
  }
  if (verdict.kind !== 'announce') return verdict
  await announceRedemption(tx, row.id, graceMs)
  return { kind: 'wait', waitMs: graceMs }
}

/**
 * Returns the response to a repeat with an Idempotency-Key: the right that the first request got, unless another caller
 * has it now.
 */
export async function redeemedBefore(
  ctx: Pick<Ctx, 'db' | 'settlementTokens' | 'tenant' | 'witness'>,
  granted: string,
): Promise<z.input<typeof Redemption>> {
  const [paymentId = '', digest = ''] = granted.split(' ')
  const payment = await findPayment(ctx.db, ctx.tenant, paymentId as PaymentId)
  const token = payment?.redemptionToken ?? null
  if (payment === undefined || token === null || digestOf(token) !== digest)
    throw fail('delivery-in-progress', { retryAfterSeconds: leaseMs / 1_000 })
  return redemptionResponse(ctx, payment.id, token)
}

/** Returns the digest that a stored Idempotency-Key keeps of a token: enough to recognize the token, too little to use it. */
function digestOf(token: string): string {
  return hash('sha256', token, 'base64url')
}

/** The caller delivers for this response, so the witness covers the payment and its redemption first. */
async function redemptionResponse(
  ctx: Pick<Ctx, 'db' | 'settlementTokens' | 'tenant' | 'witness'>,
  paymentId: PaymentId,
  token: string,
): Promise<z.input<typeof Redemption>> {
  const payment = await findPayment(ctx.db, ctx.tenant, paymentId)
  if (payment === undefined) throw new Error('a payment disappeared')
  await ctx.witness.cover()
  return { ...responseOf(ctx, payment), redemptionToken: token, expiresIn: leaseMs / 1_000 }
}

/**
 * Ends a redemption: its caller may send the response now, and nobody may send it later. Refused if the right has passed to another
 * caller.
 */
export async function finishRedemption(
  ctx: Pick<Ctx, 'baseUrl' | 'clock' | 'db' | 'serviceSeal' | 'tenant'>,
  paymentId: PaymentId,
  redemptionToken: string,
): Promise<z.input<typeof Payment>> {
  const at = ctx.clock.now()
  const marked = await markRedeemed(ctx.db, ctx.tenant, paymentId, { token: redemptionToken, at })
  const payment = await getPayment(ctx, paymentId)
  if (marked === 0) throw fail('redemption-lost')
  return payment
}

/** Undoes a finished redemption, or ends an unfinished one early: the response was not sent, so the payment can be redeemed again at once. */
export async function takeBackRedemption(
  ctx: Pick<Ctx, 'baseUrl' | 'db' | 'serviceSeal' | 'tenant'>,
  paymentId: PaymentId,
  redemptionToken: string,
): Promise<z.input<typeof Payment>> {
  const marked = await markUndelivered(ctx.db, ctx.tenant, paymentId, redemptionToken)
  const payment = await getPayment(ctx, paymentId)
  if (marked === 0) throw fail('redemption-lost')
  return payment
}

/** Records that the responses of these payments were sent to their payers. */
export async function reportDelivered(
  ctx: Pick<Ctx, 'clock' | 'db' | 'tenant'>,
  paymentIds: readonly PaymentId[],
): Promise<{ delivered: number }> {
  return { delivered: (await markDelivered(ctx.db, ctx.tenant, paymentIds, ctx.clock.now())).size }
}

/** The payment that a presented credential identifies, and its secrets that do not appear on chain. */
interface Shown {
  readonly key: PaymentKey
  /** Secrets shared by the payer and the service; each must have been present at the first verify. */
  readonly secrets: {
    readonly challengeId?: string | undefined
    readonly offerId?: string | undefined
    readonly paymentIdentifier?: string | undefined
    readonly stub?: boolean
  }
}

/**
 * Reads a credential that is presented again; undefined if it names no payment. Everything in a version 1 x402 credential also
 * appears on chain.
 */
function shownBy({ tenant }: Pick<Ctx, 'tenant'>, request: RedeemRequest): Shown | undefined {
  const { credential, protocol } = request
  if (isStub(credential)) {
    const claimKey = `stub:${tenant.organisationId}:${tenant.environment}:${credential}`
    return { key: { claimKeys: [claimKey] }, secrets: { stub: true } }
  }
  if (protocol === 'mpp') {
    const parsed = parseMppCredential(credential)
    if (!parsed.ok) return undefined
    const challengeId = parsed.value.challenge.id
    return { key: { challengeId }, secrets: { challengeId } }
  }
  const decoded = decodePayment(credential)
  if (!decoded.ok || !('authorization' in decoded.value.payload)) return undefined
  const { authorization } = decoded.value.payload
  if (decoded.value.x402Version === 1) {
    const network = networkByX402V1Name(decoded.value.network)
    const claimKeys = network?.tokens.map(({ address }) => claimKeyOf(network.caip2, address, authorization))
    return claimKeys && { key: { claimKeys }, secrets: {} }
  }
  const { accepted, extensions } = decoded.value
  const offerId = accepted.extra?.challengeId
  return {
    key: { claimKeys: [claimKeyOf(accepted.network, accepted.asset, authorization)] },
    secrets: {
      offerId: typeof offerId === 'string' ? offerId : undefined,
      paymentIdentifier: shownIdentifier(extensions),
    },
  }
}

function claimKeyOf(
  network: string,
  asset: string,
  { from, nonce }: { readonly from: string; readonly nonce: string },
) {
  return `eip3009:${network}:${asset}:${from}:${nonce}`.toLowerCase()
}

/** Whether the request is the one that was paid for and comes from the payer, not from somebody who read the chain. */
function isProvenBy(
  ctx: Pick<Ctx, 'clock' | 'signatures'>,
  row: RedeemableRow,
  shown: Shown,
  request: RedeemRequest,
): boolean {
  return (
    isSameRequest(row, request) &&
    row.protocolVersion !== 1 &&
    (knowsSecret(row, shown) || hasSigned(ctx, row, request))
  )
}

/** Whether the request is the one that was paid for. */
function isSameRequest({ resource, method, delivery }: RedeemableRow, request: RedeemRequest): boolean {
  if (delivery === null || resource !== request.resource || method !== request.method) return false
  const { digest } = delivery
  return digest === null || request.digest === undefined
    ? (digest ?? undefined) === request.digest
    : sameDigest(digest, request.digest)
}

function knowsSecret(row: RedeemableRow, { secrets }: Shown): boolean {
  const { challengeId, offerId, paymentIdentifier, stub = false } = secrets
  const given = [
    [row.challengeId, challengeId],
    [row.delivery?.challengeId, offerId],
    [row.paymentIdentifier, paymentIdentifier],
  ] as const
  return (
    stub ||
    given.some(
      ([known, shown]) => typeof known === 'string' && shown !== undefined && equalInConstantTime(known, shown),
    )
  )
}

const signatureAgeMsMax = 300_000

/**
 * Whether the payer signed this redemption. The signature of a contract account cannot be checked without the chain; such
 * payments can be refunded instead.
 */
function hasSigned(
  ctx: Pick<Ctx, 'clock' | 'signatures'>,
  { payer, claimKey }: RedeemableRow,
  request: RedeemRequest,
): boolean {
  const { signature, method, resource } = request
  if (signature === undefined || payer === null || claimKey === null) return false
  const { signedAt, value } = signature
  if (Math.abs(ctx.clock.now().getTime() - signedAt.getTime()) > signatureAgeMsMax) return false
  const { keccak, recover } = ctx.signatures
  const parsed = parseEcdsa(hexToBytes(value))
  if (typeof parsed === 'string') return false
  const hash = redemptionHash(keccak, { payment: claimKey, method, resource, signedAt: signedAt.toISOString() })
  const signer = recoverAddress(recover, keccak, hash, parsed)
  return signer !== undefined && sameAddress(signer, payer)
}
