import { contentDigest, sha256 } from '@purser/protocol'
import { ConflictError, PaymentRefusedError, ValidationError } from '../errors.ts'
import type { Admission, ReadableAdmission } from './admission.ts'
import { admitSession } from './admit-session.ts'
import { checkPrice } from './check-options.ts'
import type { VerifyRequested } from './contract.ts'
import { type Credential, claimedPayer, findCredential, isPush, isReusable, movesAtVerify } from './credential.ts'
import type { PayOptions } from './options.ts'
import { type PayerSignature, payerSignatureOf } from './payer-signature.ts'
import { optionsResponse, readableBy } from './preflight.ts'
import { keptKeyOf, paidBy, purchaseOf } from './purchase.ts'
import { admitAgain, serveKept } from './redeem.ts'
import type { Claim } from './replays.ts'
import { reporting } from './report-sale.ts'
import { isMisconfigured, type PaymentContext, requestPayment } from './request-payment.ts'
import type { RequestShape } from './request-shape.ts'
import { finalRefusal, type OwnResponse, problemResponse, type Refusal } from './responses.ts'
import { type Route, routeOf, type Seller } from './seller.ts'
import { sessionHeader } from './sessions.ts'
import { conclude, type Purchase } from './settle.ts'

/** A request, independent of the framework. */
export interface PaidRequest<R> {
  readonly method: string
  /** The origin from the request's `Host` header, such as `http://host`. */
  readonly origin: string
  /** Path and query as the caller sent them. */
  readonly target: string
  /** All values of a header, joined with commas. Names are in lower case. */
  readonly header: (name: string) => string | undefined
  /** The framework's request object, passed to the provider's functions. */
  readonly own: R
  /** The request shape to report to the registry, available after the response. */
  readonly look?: () => RequestShape
}

/**
 * Decides about a request before its handler runs. Fails closed: the handler runs only after Purser has verified the
 * payment, and internal errors never reach the payer. Of two simultaneous copies of a credential, Purser accepts one.
 */
export async function admit<R>(
  seller: Seller,
  options: PayOptions<R>,
  request: PaidRequest<R>,
): Promise<ReadableAdmission> {
  const route = routeOf(seller.defaults, options)
  const { method, header } = request
  const cors = readableBy(route.cors, header, method)
  if (method === 'OPTIONS') return { ...refuse(optionsResponse(route.cors, header)), cors }
  return { ...(await admitRequest(seller, options, route, request)), cors }
}

async function admitRequest<R>(
  seller: Seller,
  options: PayOptions<R>,
  route: Route,
  request: PaidRequest<R>,
): Promise<Admission> {
  const { method, header, own } = request
  if (route.freeMethods.includes(method)) return { kind: 'free' }
  const resource = resourceOf(seller.publicUrl ?? request.origin, request.target)
  if (resource === undefined) return refuse(problemResponse('malformed-request'))
  const credential = findCredential(header)
  if (credential === 'ambiguous') return refuse(problemResponse('ambiguous-payment'))
  const price = typeof options.price === 'function' ? await options.price(own) : options.price
  checkPrice(price)
  const digest = options.bindBody === undefined ? undefined : contentDigest(bytesOf(await options.bindBody(own)))
  const [ip, acceptPayment] = [options.clientIp?.(own), header('accept-payment')]
  const context: PaymentContext = { seller, route, price, resource, method, ip, digest, acceptPayment }
  if (credential === 'none' || !route.protocols.includes(credential.protocol)) {
    const session = route.acceptSessions ? header(sessionHeader.toLowerCase()) : undefined
    return session === undefined ? refuse(await requestPayment(context)) : admitSession(context, session)
  }
  const key = keptKeyOf(context, credential)
  const run = isReusable(credential) ? undefined : seller.runs.stateOf(key)
  if (run === 'running') return refuse(problemResponse('delivery-in-progress', 5))
  const signature = payerSignatureOf(header)
  const kept = await serveKept(context, credential, signature)
  if (kept !== undefined) return { kind: 'refused', ...kept }
  if (run === 'unsold') return refuse(problemResponse('duplicate-payment'))
  if (seller.abandoned.isOver(claimedPayer(credential)))
    return refuse(problemResponse('too-many-abandoned-requests', 60))
  const claim = claimOf(context, credential)
  if (claim.kind === 'replay') return refuse(claim.response)
  if (claim.kind === 'duplicate') return admitAgain(context, credential, signature)
  if (claim.kind === 'conflict') return refuse(problemResponse('payment-identifier-conflict'))
  const seen = { protocol: credential.protocol, contentType: header('content-type'), look: request.look }
  return reporting(context, seen, await verify(context, credential, claim, signature))
}

type Claimed = Extract<Claim, { kind: 'claimed' }> | { readonly kind: 'nameless'; readonly free: () => void }

function claimOf(context: PaymentContext, credential: Credential): Exclude<Claim, { kind: 'claimed' }> | Claimed {
  const id = credential.protocol === 'x402' ? credential.paymentId : undefined
  if (id === undefined) return { kind: 'nameless', free: () => {} }
  const bound = JSON.stringify([credential.value, context.method, context.resource, context.digest])
  const payer = claimedPayer(credential)?.toLowerCase() ?? ''
  return context.seller.replays.claim({ payer, id, fingerprint: sha256(bytesOf(bound)).join() })
}

async function verify(
  context: PaymentContext,
  credential: Credential,
  claim: Claimed,
  signature: PayerSignature | undefined,
): Promise<Admission> {
  const { runs, purser, onFault } = context.seller
  const key = keptKeyOf(context, credential)
  const verifiedAt = performance.now()
  if (!isReusable(credential) && !runs.begin(key)) {
    claim.free()
    return refuse(problemResponse('delivery-in-progress', 5))
  }
  try {
    const verification = await purser.payments.verify(requestOf(context, credential))
    const keep = claim.kind === 'claimed' ? claim.keep : undefined
    const { free } = claim
    return paid(purchaseOf(context, credential, { verification, verifiedAt, keep, free }), claim)
  } catch (error) {
    runs.end(key, 'over')
    claim.free()
    const refusal = refusalIn(error, credential)
    if (refusal !== undefined) return refuse(finalRefusal(refusal) ?? (await requestPayment(context, refusal)))
    if (error instanceof ConflictError && error.code === 'duplicate-payment')
      return admitAgain(context, credential, signature)
    if (error instanceof ConflictError && error.code === 'payment-identifier-conflict')
      return refuse(problemResponse(error.code))
    onFault({ stage: 'verify', error })
    if (isMisconfigured(error)) return refuse(problemResponse('payments-misconfigured'))
    return refuse(problemResponse(movesAtVerify(credential) ? 'settlement-unavailable' : 'payments-unavailable', 5))
  }
}

function requestOf(
  { seller, route, price, resource, method, digest }: PaymentContext,
  credential: Credential,
): VerifyRequested {
  return {
    protocol: credential.protocol,
    credential: credential.value,
    price,
    currency: 'USD',
    ...seller.payee,
    resource,
    method,
    ...(route.description !== undefined && { description: route.description }),
    ...(digest !== undefined && { digest }),
    reportsDelivery: true,
  }
}

/** Returns why the credential is invalid, or undefined if the error has another cause. */
function refusalIn(error: unknown, credential: Credential): Refusal | undefined {
  const { protocol } = credential
  if (error instanceof PaymentRefusedError) {
    const message = error.problem?.message
    return {
      protocol,
      reason: error.reason,
      message: typeof message === 'string' ? message : undefined,
      hasMoved: isPush(credential),
    }
  }
  const unreadable = error instanceof ValidationError && error.errors.some(({ path }) => path === '/credential')
  if (!unreadable) return undefined
  return { protocol, reason: protocol === 'mpp' ? 'malformed-credential' : 'invalid_payload' }
}

function paid(purchase: Purchase, claim: Claimed): Admission {
  const { context, credential, payment, settlementToken } = purchase
  const { seller, method } = context
  const hasMoved = !payment.settlementPending || payment.txHash !== null
  const over = () => seller.runs.end(keptKeyOf(context, credential), 'over')
  const unsold = () => {
    seller.runs.end(keptKeyOf(context, credential), hasMoved ? 'over' : 'unsold')
    claim.free()
    if (!hasMoved) seller.release({ paymentId: payment.paymentId, settlementToken })
  }
  const abandoned = () => {
    seller.abandoned.count(payment.payer)
    unsold()
  }
  const faulty = (error: Error) => {
    unsold()
    seller.onFault({ stage: 'handler', error, payment })
  }
  return {
    ...paidBy(purchase),
    conclude: () => conclude(purchase).finally(over),
    tooLarge: () => {
      faulty(new RangeError('The response exceeds bodyBytesMax.'))
      return problemResponse('response-too-large')
    },
    failed: () => {
      if (payment.txHash === null) return unsold()
      faulty(new Error('The handler failed after the money had moved.'))
    },
    abandon: () => {
      if (hasMoved || (method !== 'GET' && method !== 'HEAD')) return false
      abandoned()
      return true
    },
    unended: () => (hasMoved ? faulty(new Error('The handler did not end its response.')) : abandoned()),
  }
}

function refuse(response: OwnResponse): Extract<Admission, { kind: 'refused' }> {
  return { kind: 'refused', response }
}

function bytesOf(data: Uint8Array | string): Uint8Array {
  return typeof data === 'string' ? new TextEncoder().encode(data) : data
}

/**
 * The longest URL that Purser accepts. A longer one is the caller's fault, not the provider's. It is not parsed, because
 * a long host name takes many milliseconds.
 */
export const resourceLengthMax = 2_048

/**
 * A path that `URL` changes: it resolves dot segments, reads `\` as `/` and ends the path at `#`. Frameworks match the path as it was sent, so the
 * request would have the route of one address and the URL of another.
 */
const ambiguousPath = /(?:^|\/)(?:\.|%2e){1,2}(?:\/|$)|[\\#\s]/i

/** The public URL of the paid route, or undefined if the request's address or host name is malformed or ambiguous. */
function resourceOf(base: string, target: string): string | undefined {
  if (base.length + target.length > resourceLengthMax) return undefined
  if (ambiguousPath.test(target.split('?', 1)[0] ?? '')) return undefined
  try {
    const { href } = new URL(base + (target.startsWith('/') ? target : pathOf(new URL(target))))
    return href.length <= resourceLengthMax ? href : undefined
  } catch {
    return undefined
  }
}

function pathOf({ pathname, search }: URL): string {
  return pathname + search
}
