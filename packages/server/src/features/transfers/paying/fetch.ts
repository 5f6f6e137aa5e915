import { readReceipt, settlementPending } from '@purser/protocol'
import type { SendOutcome } from '../../../platform/guarded-fetch.ts'
import { Reply } from '../../../platform/operation.ts'
import type { Ctx } from '../ports.ts'
import { paymentOf } from './answer.ts'
import { failPaying } from './errors.ts'
import { storePayment } from './pay.ts'
import { type ChallengePayment, headerOf, type NewWalletPayment, type SellerResponse } from './schema.ts'
import { keepOutcome } from './store.ts'

type Answered = Extract<SendOutcome, { kind: 'answered' }>
type UrlPayment = NewWalletPayment & { readonly url: string }

/** Bodies up to this many bytes are stored for a repeat with the same Idempotency-Key. */
const keptBytesMax = 65_536
/** A 402 may have 64 KB of challenges, and a credential repeats one of them. */
export const sellerLimits = {
  totalMs: 20_000,
  headerBytesMax: 98_304,
  fieldLengthMax: 65_536,
  answerBytesMax: 1_048_576,
  connectionsPerGroup: 16,
}
const challengeBodyMax = 262_144

/**
 * Fetches a URL and, if it answers 402, pays it and fetches it once more with the credential. At most one credential is sent, to the URL
 * itself: no redirect is followed, and a second 402 is returned. 502 if the first request got no response.
 */
export async function payUrl(ctx: Ctx, request: UrlPayment): Promise<Reply> {
  const first = await send(ctx, request)
  if (first.kind === 'failed') throw refusalOf(first)
  if (first.status !== 402) return replyOf(200, { id: null, response: shownResponse(first) }, first)
  const transferId = await storePayment(ctx, { ...request, challenge: challengeOf(first) })
  const { isWaiting, isFetching: _, ...payment } = await paymentOf(ctx, transferId)
  const { credential } = payment
  if (credential === null) return new Reply(isWaiting ? 202 : 201, { ...payment, outcome: null })
  const second = await send(ctx, request, credential)
  const outcome = outcomeOf(second)
  const answered = second.kind === 'answered' ? second : undefined
  await keepOutcome(ctx.db, transferId, { outcome, status: answered?.status })
  return replyOf(
    201,
    { ...payment, outcome, response: answered === undefined ? null : shownResponse(answered) },
    answered,
  )
}

/** A long answer is not stored: a repeat is answered from the payment, without the body. */
function replyOf(status: number, body: unknown, seen: Answered | undefined): Reply {
  return new Reply(status, body, {}, (seen?.bytes.length ?? 0) > keptBytesMax)
}

function send(
  { sellerFetch, tenant }: Ctx,
  { url, method = 'GET', headers = {}, body, bodyEncoding = 'text' }: UrlPayment,
  credential?: { readonly header: string; readonly value: string },
): Promise<SendOutcome> {
  const given = headerOf(headers)
  return sellerFetch.send({
    method,
    url,
    group: tenant.organisationId,
    headers: {
      ...(given('accept') === undefined && { accept: '*/*' }),
      ...(given('user-agent') === undefined && { 'user-agent': 'Purser' }),
      ...headers,
      ...(credential && { [credential.header]: credential.value }),
    },
    body: body === undefined ? undefined : Buffer.from(body, bodyEncoding === 'base64' ? 'base64' : 'utf8'),
  })
}

const unsentFailures = ['unreachable', 'timeout', 'tls-failed', 'name-unknown', 'connection-lost', 'answer-malformed']

function refusalOf({ failure: reason }: Extract<SendOutcome, { kind: 'failed' }>) {
  return failPaying(unsentFailures.includes(reason) ? 'payment-url-unreachable' : 'payment-url-not-allowed', { reason })
}

function fieldsOf({ headers }: Answered): Readonly<Record<string, string>> {
  const fields = Object.entries(headers).map(([name, value]) => [name, Array.isArray(value) ? value.join(', ') : value])
  return Object.fromEntries(fields.filter(([, value]) => value !== undefined))
}

function challengeOf(answered: Answered): ChallengePayment['challenge'] {
  const body = answered.bytes.length <= challengeBodyMax ? textOf(answered) : undefined
  return { status: 402, headers: fieldsOf(answered), ...(body !== undefined && { body }) }
}

function textOf({ bytes }: Answered): string | undefined {
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
    return text.includes('\u0000') ? undefined : text
  } catch {
    return undefined
  }
}

function shownResponse(answered: Answered): SellerResponse {
  const headers = fieldsOf(answered)
  const { receipt, txHash = null } = readReceipt(headerOf(headers))
  const text = textOf(answered)
  return {
    status: answered.status,
    headers,
    body: text ?? answered.bytes.toString('base64'),
    bodyEncoding: text === undefined ? 'base64' : 'text',
    isWhole: answered.isWhole,
    receipt: receipt === undefined ? null : { txHash, details: receipt },
  }
}

/** The outcome that a response to a credential states. A pending settlement may still be paid. */
function outcomeOf(second: SendOutcome): 'paid' | 'refused' | 'unknown' {
  if (second.kind === 'failed') return 'unknown'
  const { status } = second
  if (status >= 200 && status < 300) return 'paid'
  const { receipt } = readReceipt(headerOf(fieldsOf(second)))
  const isPending = receipt !== undefined && 'errorReason' in receipt && receipt.errorReason === settlementPending
  return (status === 402 || status === 409) && !isPending ? 'refused' : 'unknown'
}
