import { challengeIdSlots } from './challenge-id-slots.ts'
import { UnavailableError } from './errors.ts'
import type { operations } from './generated/openapi.ts'
import type { Json, ResponseBody } from './operations.ts'
import { isRecord } from './problem.ts'
import type { ServiceResponse } from './transport.ts'

type ChallengeJson = Extract<ResponseBody<operations['payments.challenge']>, { readonly mpp: string | null }>

/** The JSON body of an x402 version 1 challenge: the members that the SDK uses. */
export type X402V1Body = NonNullable<ChallengeJson['x402V1']> & {
  readonly x402Version: number
  readonly accepts: readonly unknown[]
}

/**
 * A payment challenge for one payer. Each is unique and must be used once. `x402` is the value of the
 * `PAYMENT-REQUIRED` header, `mpp` of `WWW-Authenticate`; null if it was not requested or cannot be offered.
 */
export type Challenge = Omit<ChallengeJson, 'x402V1'> & { readonly x402V1: X402V1Body | null }

/**
 * A verified payment. `settlementPending`: `settle` must still be called to move the money. `settlementToken` is a
 * secret that authorizes settlement. Do not pass it to the payer.
 */
export type Verification = ResponseBody<operations['payments.verify']>

/** The right to serve a payment once. Pass its `redemptionToken` to `redeemed` before the response is sent. */
export type Redemption = ResponseBody<operations['payments.redeem']>

/** The settlement state of a payment. `settling`: not final yet; it has the hash once the transaction is in a block. */
export type Settlement =
  | ({ readonly status: 'settled' } & ResponseBody<operations['payments.settle']>)
  | Json<operations['payments.settle']['responses'][202]>

/** Reads the body of a success. A 2xx with an invalid body counts as no response. */
export function confirm<T>(response: ServiceResponse, read: (body: unknown) => T | undefined): T {
  const value = read(response.body)
  if (value !== undefined) return value
  const requestId = response.headers.get('x-request-id') ?? undefined
  const facts = {
    status: response.status,
    code: 'unreadable-answer',
    requestId,
    idempotencyKey: response.idempotencyKey,
  }
  throw new UnavailableError('The response does not have the form of this operation.', facts)
}

/** Returns the challenge in a body, or undefined if the body is not one. */
export function readChallenge(body: unknown): Challenge | undefined {
  if (!isRecord(body)) return undefined
  const { x402, x402V1, mpp, expiresAt } = body
  if (typeof expiresAt !== 'string') return undefined
  return { x402: textOrNull(x402), x402V1: readX402V1(x402V1), mpp: textOrNull(mpp), expiresAt }
}

function readX402V1(body: unknown): X402V1Body | null {
  if (!isRecord(body) || !Array.isArray(body.accepts)) return null
  return { ...body, x402Version: 1, accepts: body.accepts }
}

/**
 * Reads a compact batch of `count` challenges. Members that are the same in all of them share one string, to save
 * memory. Undefined if the body is not such a batch.
 */
export function readChallenges(body: unknown, count: number): Challenge[] | undefined {
  if (!isRecord(body)) return undefined
  const shared = readChallenge({ ...body, mpp: null })
  const [mpp, ids] = [readTexts(body.mpp, count), readTexts(body.challengeIds ?? null, count)]
  if (shared === undefined || mpp === undefined || ids === undefined || count < 1) return undefined
  const x402With = shared.x402 === null ? undefined : challengeIdSlots(shared.x402)
  return Array.from({ length: count }, (_, index) => {
    const [value, id] = [mpp?.[index], ids?.[index]]
    const x402 = id === undefined || x402With === undefined ? shared.x402 : x402With(id)
    return { ...shared, x402, mpp: value ?? null }
  })
}

/** Reads a list of this many strings, or null. Undefined for anything else. */
function readTexts(value: unknown, count: number): string[] | null | undefined {
  if (value === null) return null
  const texts = Array.isArray(value) ? value.filter((text) => typeof text === 'string') : []
  return texts.length === count ? texts : undefined
}

/** Reads a verification. Undefined unless it has `valid: true` and the token that settles the payment. */
export function readVerification(body: unknown): Verification | undefined {
  if (!isRecord(body)) return undefined
  const { valid, paymentId, protocol, amount, coin, settlementPending, settlementToken } = body
  const terms = readTerms(body)
  if (
    terms === undefined ||
    valid !== true ||
    typeof paymentId !== 'string' ||
    (protocol !== 'x402' && protocol !== 'mpp')
  )
    return undefined
  if (typeof amount !== 'string' || typeof coin !== 'string') return undefined
  if (typeof settlementPending !== 'boolean' || typeof settlementToken !== 'string') return undefined
  const [txHash, settledAt] = [textOrNull(body.txHash), textOrNull(body.settledAt)]
  const payer = textOrNull(body.payer)
  const money = { amount, coin, payer, txHash, settledAt }
  return { valid, paymentId, protocol, ...terms, ...money, settlementPending, settlementToken }
}

type Terms = Pick<Verification, 'scheme' | 'method' | 'challengeId' | 'network' | 'redeemable'>

/** The payment terms of a verification. `method` is null for a method that this version does not know. */
function readTerms(body: Record<string, unknown>): Terms | undefined {
  const { scheme, method, challengeId, network, redeemable } = body
  if (typeof scheme !== 'string' || typeof network !== 'string' || typeof redeemable !== 'boolean') return undefined
  const known = method === 'evm' || method === 'tempo' ? method : null
  return { scheme, method: known, challengeId: textOrNull(challengeId), network, redeemable }
}

/** Reads a redemption. Undefined without the token that finishes it. */
export function readRedemption(body: unknown): Redemption | undefined {
  const verification = readVerification(body)
  if (verification === undefined || !isRecord(body)) return undefined
  const { redemptionToken, expiresIn } = body
  if (typeof redemptionToken !== 'string' || typeof expiresIn !== 'number') return undefined
  return { ...verification, redemptionToken, expiresIn }
}

/** Reads a settlement, final or pending. Undefined if the body is neither. */
export function readSettlement(body: unknown): Settlement | undefined {
  if (!isRecord(body)) return undefined
  const txHash = textOrNull(body.txHash)
  if (body.status === 'settling') return { status: 'settling', txHash }
  const settledAt = body.settledAt
  const receipt = textOrNull(body.receipt)
  const redemptionRequested = body.redemptionRequested === true
  return typeof settledAt === 'string'
    ? { status: 'settled', txHash, settledAt, redemptionRequested, receipt }
    : undefined
}

function textOrNull(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}
