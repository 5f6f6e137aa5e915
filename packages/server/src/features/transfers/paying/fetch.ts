import {
  bytesToHex,
  hexToBytes,
  networkByName,
  readReceipt,
  readRefusal,
  signedHeader,
  tokenBySymbol,
} from '@purser/protocol'
import { shareOwnerOf } from '../../../platform/ctx.ts'
import { failPlatform } from '../../../platform/errors.ts'
import type { SendOutcome } from '../../../platform/guarded-fetch.ts'
import { id } from '../../../platform/ids.ts'
import { Reply } from '../../../platform/operation.ts'
import { approvalStates } from '../../approvals/index.ts'
import { createAccountSigners, signGasless } from '../../wallets/index.ts'
import { fail } from '../errors.ts'
import type { Ctx } from '../ports.ts'
import { findOwnTransfer, type TransferId, type TransferRow } from '../store.ts'
import { shown } from '../transfer.ts'
import { failPaying } from './errors.ts'
import { storePayment, usableSource } from './pay.ts'
import {
  type ChallengePayment,
  headerOf,
  type NewWalletPayment,
  type SellerResponse,
  type WalletPayment,
} from './schema.ts'
import { findPayment, keepOutcome, storeSignatureOnce, type WalletPaymentRow } from './store.ts'

type Responded = Extract<SendOutcome, { kind: 'responded' }>
type UrlPayment = NewWalletPayment & { readonly url: string }

/** Bodies up to this many bytes are stored for a repeat with the same Idempotency-Key. */
const keptBytesMax = 65_536
/** A 402 may have 64 KB of challenges, and a credential repeats one of them. */
export const sellerLimits = {
  totalMs: 20_000,
  headerBytesMax: 98_304,
  fieldLengthMax: 65_536,
  responseBytesMax: 1_048_576,
  connectionsPerGroup: 16,
}
const challengeBodyMax = 262_144

/**
 * Fetches a URL and, if it responds with 402, pays it and fetches it once more with the credential. At most one credential is sent, to the URL
 * itself: no redirect is followed, and a second 402 is returned. 502 if the first request got no response. The memory of the longest
 * response is reserved before the first request, because a payment that was signed must not be refused.
 */
export async function payUrl(ctx: Ctx, request: UrlPayment): Promise<Reply> {
  const release = ctx.reserveResponse(shareOwnerOf(ctx), sellerLimits.responseBytesMax)
  try {
    await usableSource(ctx, request)
    return await fetchPaid(ctx, request)
  } finally {
    release()
  }
}

async function fetchPaid(ctx: Ctx, request: UrlPayment): Promise<Reply> {
  const first = await send(ctx, request)
  if (first.kind === 'failed') throw refusalOf(first)
  if (first.status !== 402) return unpaid(first)
  await ctx.refuseEnded?.()
  const transferId = await storePayment(ctx, { ...request, challenge: challengeOf(first) })
  const { isWaiting, isFetching: _, ...payment } = await paymentOf(ctx, transferId)
  const { credential } = payment
  if (credential === null) return new Reply(isWaiting ? 202 : 201, { ...payment, outcome: null })
  const second = await send(ctx, request, credential)
  const outcome = outcomeOf(second)
  const response = second.kind === 'responded' ? second : undefined
  await keepOutcome(ctx.db, transferId, { outcome, status: response?.status })
  return replyOf({ ...payment, outcome, response: response === undefined ? null : shownResponse(response) }, response)
}

/**
 * The response of a seller that requires no payment. A failure is not stored for the Idempotency-Key: nothing was paid, and an approved payment can
 * still be made by a repeat. Other responses are stored, because the seller may have done what was requested; a long one is not.
 */
function unpaid(response: Responded): Reply {
  const runsAgain = response.status >= 400 || isLong(response)
  return new Reply(200, { id: null, response: shownResponse(response) }, {}, { runsAgain })
}

function isLong({ bytes }: Responded): boolean {
  return bytes.length > keptBytesMax
}

/** A long response is not stored: a repeat gets one from the payment, without the body. */
function replyOf(body: unknown, seen: Responded | undefined): Reply {
  return new Reply(201, body, {}, { isOpen: seen !== undefined && isLong(seen) })
}

function send(
  ctx: Pick<Ctx, 'sellerFetch' | 'shareOwner' | 'tenant'>,
  { url, method = 'GET', headers = {}, body, bodyEncoding = 'text' }: UrlPayment,
  credential?: { readonly header: string; readonly value: string },
): Promise<SendOutcome> {
  const given = headerOf(headers)
  return ctx.sellerFetch.send({
    method,
    url,
    group: shareOwnerOf(ctx),
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

function fieldsOf({ headers }: Responded): Readonly<Record<string, string>> {
  const fields = Object.entries(headers).map(([name, value]) => [name, Array.isArray(value) ? value.join(', ') : value])
  return Object.fromEntries(fields.filter(([, value]) => value !== undefined))
}

function challengeOf(response: Responded): ChallengePayment['challenge'] {
  const body = response.bytes.length <= challengeBodyMax ? textOf(response) : undefined
  return { status: 402, headers: fieldsOf(response), ...(body !== undefined && { body }) }
}

function textOf({ bytes }: Responded): string | undefined {
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
    return text.includes('\u0000') ? undefined : text
  } catch {
    return undefined
  }
}

function shownResponse(response: Responded): SellerResponse {
  const headers = fieldsOf(response)
  const { receipt, txHash = null } = readReceipt(headerOf(headers))
  const text = textOf(response)
  return {
    status: response.status,
    headers,
    body: text ?? response.bytes.toString('base64'),
    bodyEncoding: text === undefined ? 'base64' : 'text',
    isWhole: response.isWhole,
    receipt: receipt === undefined ? null : { txHash, details: receipt },
  }
}

/** The outcome that a response to a credential states. A payment whose refusal passes may still be served or settled. */
function outcomeOf(second: SendOutcome): 'paid' | 'refused' | 'unknown' {
  if (second.kind === 'failed') return 'unknown'
  const { status } = second
  if (status >= 200 && status < 300) return 'paid'
  if (status !== 402 && status !== 409) return 'unknown'
  const isBodyRead = second.isWhole && second.bytes.length <= challengeBodyMax
  const body = isBodyRead ? jsonOf(second) : undefined
  return readRefusal({ status, header: headerOf(fieldsOf(second)), body, isBodyRead }).isPassing ? 'unknown' : 'refused'
}

function jsonOf(response: Responded): unknown {
  try {
    return JSON.parse(textOf(response) ?? '')
  } catch {
    return undefined
  }
}

/** Pays a 402 from a managed wallet: stores the payment, signs it and returns the credential. 202 while it waits for an approval. */
export async function payChallenge(ctx: Ctx, request: ChallengePayment): Promise<WalletPayment | Reply> {
  const { isWaiting, isFetching: _, ...payment } = await paymentOf(ctx, await storePayment(ctx, request))
  return isWaiting ? new Reply(202, payment) : payment
}

/**
 * The present state of a payment, for a repeated request whose first response was never stored: the same credential, and what the seller
 * responded as far as it is known. 409 while the first request may still wait for the seller.
 */
export async function paymentState(
  ctx: Pick<Ctx, 'clock' | 'db' | 'tenant' | 'walletKeys' | 'witness'>,
  transferId: string,
): Promise<WalletPayment | Reply> {
  const { isWaiting, isFetching, ...payment } = await paymentOf(ctx, id('wtx').parse(transferId))
  if (isFetching) throw failPlatform('idempotency-in-progress')
  return isWaiting ? new Reply(202, payment) : payment
}

/** A payment as returned to the caller, with the flags that select the status of the response. */
type ShownPayment = WalletPayment & {
  readonly isWaiting: boolean
  /** The first request may still wait for the seller. */
  readonly isFetching: boolean
}

/** Returns a stored payment with its credential; signs it if it has no signature yet. */
async function paymentOf(
  ctx: Pick<Ctx, 'clock' | 'db' | 'tenant' | 'walletKeys' | 'witness'>,
  transferId: TransferId,
): Promise<ShownPayment> {
  const row = await findOwnTransfer(ctx.db, ctx.tenant, transferId)
  const payment = await findPayment(ctx.db, ctx.tenant, transferId)
  if (row === undefined || payment === undefined) throw fail('transfer-not-found')
  const approval = (await approvalStates(ctx, [row])).get(row.approvalId) ?? null
  const { method, fetchUntil, responseStatus: status } = payment
  const credential = await credentialOf(ctx, row, payment)
  const outcome = payment.outcome ?? (fetchUntil === null ? null : 'unknown')
  const lost = { headers: null, body: null, bodyEncoding: 'text', isWhole: false, receipt: null } as const
  const response = status === null ? null : { status, ...lost }
  return {
    ...shown(row, approval),
    method,
    credential,
    outcome,
    response,
    isWaiting: approval?.status === 'waiting',
    isFetching: payment.outcome === null && fetchUntil !== null && fetchUntil > ctx.clock.now(),
  }
}

/**
 * Signs if nobody has signed yet. A payment that ended without a signature stays without one. The credential leaves after the witness covers its payment:
 * a restored database that lost it would sign another one for a repeat.
 */
async function credentialOf(
  ctx: Pick<Ctx, 'db' | 'walletKeys' | 'witness'>,
  row: TransferRow,
  payment: WalletPaymentRow,
): Promise<WalletPayment['credential']> {
  const { draft, validBefore, signature } = payment
  if (draft === null || validBefore === null || (signature === null && row.endedAt !== null)) return null
  const bytes =
    signature ?? (await storeSignatureOnce(ctx.db, row.id, await signatureOf(ctx, row, { draft, validBefore })))
  await ctx.witness.cover()
  return { ...signedHeader(draft, bytesToHex(bytes)), validBefore }
}

type Unsigned = { readonly [name in 'draft' | 'validBefore']: NonNullable<WalletPaymentRow[name]> }

/** The wallet's signature, 65 bytes. Every signature of a payment is of the same stored message. */
async function signatureOf(
  ctx: Pick<Ctx, 'db' | 'walletKeys'>,
  row: TransferRow,
  { draft, validBefore }: Unsigned,
): Promise<Uint8Array> {
  const network = networkByName(row.fromNetwork)
  const token = network === undefined ? undefined : tokenBySymbol(network, row.fromToken)
  const signer = await createAccountSigners(ctx)(row.fromAddress)
  if (network === undefined || token === undefined || signer === undefined) throw new Error('no signer for a payment')
  const { signature } = await signGasless(signer, network, {
    asset: token.address,
    fromAddress: row.fromAddress,
    toAddress: row.toAddress,
    rawAmount: row.rawAmount,
    nonce: hexToBytes(draft.authorization.nonce),
    validBefore,
  })
  if (signature.kind !== 'ecdsa') throw new Error('a wallet signs with its key')
  const { r, s, v } = signature
  return Uint8Array.from([...hexToBytes(r), ...hexToBytes(s), v])
}
