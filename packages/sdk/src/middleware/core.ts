import { contentDigest, sha256 } from '@purser/protocol'
import { ConflictError, PaymentRefusedError, ValidationError } from '../errors.ts'
import type { VerifiedPayment } from '../payments.ts'
import type { Session } from '../sessions.ts'
import { finalRefusal, type OwnAnswer, problemAnswer, type Refusal } from './answers.ts'
import { askToPay, isMisconfigured, type Sale } from './ask.ts'
import { checkPrice } from './check-options.ts'
import type { VerifyAsked } from './contract.ts'
import { type Credential, claimedPayer, findCredential, isPush, isReusable, movesAtVerify } from './credential.ts'
import { enter } from './enter.ts'
import type { Look } from './observed.ts'
import { type PayOptions, type Route, routeOf, type Till } from './options.ts'
import { optionsAnswer, type ReadableBy, readableBy } from './preflight.ts'
import { keptKeyOf, purchaseOf } from './purchase.ts'
import { admitAgain, type Served, serveKept } from './redeem.ts'
import { type PayerSignature, payerSignatureOf } from './redeem-request.ts'
import { reporting } from './registry-report.ts'
import type { Claim } from './replays.ts'
import { sessionHeader } from './sessions.ts'
import { type Conclusion, conclude, type Purchase } from './settle.ts'
import type { PaidVault } from './vault.ts'

/** A request as the core sees it, whatever the framework. */
export interface PaidRequest<R> {
  readonly method: string
  /** `http://host` as the request named it. */
  readonly origin: string
  /** Path and query as the caller sent them. */
  readonly target: string
  /** All values of a header, joined with commas; names are lower case. */
  readonly header: (name: string) => string | undefined
  /** The framework's own request, for the provider's functions. */
  readonly own: R
  /** What the registry may know of the request, once it is answered. */
  readonly look?: () => Look
}

/** What to do with a request: let it pass free, answer in the handler's place, or run the handler and then conclude. */
export type Admission =
  | { readonly kind: 'free' }
  | ({ readonly kind: 'refused' } & Served)
  | ({ readonly kind: 'paid' } & Paid)

/** An admission, and who may read the answer, whoever gives it. */
export type ReadableAdmission = Admission & { readonly cors: ReadableBy }

/** A request that is paid for, now or by a session, and whose handler has not been answered for yet. */
export interface Paid {
  /** Verified; undefined for a request that came with a session. */
  readonly payment: VerifiedPayment | undefined
  readonly session: Session | undefined
  readonly vault: PaidVault
  readonly bodyBytesMax: number
  /** Call once, when the handler succeeded: settles, and says whether its answer may leave. */
  readonly conclude: () => Promise<Conclusion>
  /** The answer when the handler's is larger than may be kept back; the payment stays unsettled. */
  readonly tooLarge: () => OwnAnswer
  /** Call when the handler failed: nothing is settled, and the payer may use the name of his payment again. */
  readonly failed: () => void
  /**
   * Call when the client has left before the handler ended: whether that ends the sale. It does for a safe method, whose
   * payment stays unsettled. An unsafe handler has done its work, and is paid if it succeeds.
   */
  readonly abandon: () => boolean
}

/**
 * Decides about a request before its handler runs. It fails closed: without a clear yes from Purser there is no
 * handler, and nothing from inside reaches the payer. Two copies of one credential sent at once: Purser says yes to one
 * of them.
 */
export async function admit<R>(
  till: Till,
  options: PayOptions<R>,
  request: PaidRequest<R>,
): Promise<ReadableAdmission> {
  const route = routeOf(till.defaults, options)
  const { method, header } = request
  const cors = readableBy(route.cors, header, method === 'OPTIONS')
  if (method === 'OPTIONS') return { ...refuse(optionsAnswer(route.cors, header)), cors }
  return { ...(await admitRequest(till, options, route, request)), cors }
}

async function admitRequest<R>(
  till: Till,
  options: PayOptions<R>,
  route: Route,
  request: PaidRequest<R>,
): Promise<Admission> {
  const { method, header, own } = request
  if (route.freeMethods.includes(method)) return { kind: 'free' }
  const resource = resourceOf(till.publicUrl ?? request.origin, request.target)
  if (resource === undefined) return refuse(problemAnswer('malformed-request'))
  const credential = findCredential(header)
  if (credential === 'ambiguous') return refuse(problemAnswer('ambiguous-payment'))
  const price = typeof options.price === 'function' ? await options.price(own) : options.price
  checkPrice(price)
  const digest = options.bindBody === undefined ? undefined : contentDigest(bytesOf(await options.bindBody(own)))
  const [ip, acceptPayment] = [options.clientIp?.(own), header('accept-payment')]
  const hasFixedPrice = typeof options.price === 'string'
  const sale: Sale = { till, route, price, hasFixedPrice, resource, method, ip, digest, acceptPayment }
  if (credential === 'none' || !route.protocols.includes(credential.protocol)) {
    const session = route.acceptSessions ? header(sessionHeader.toLowerCase()) : undefined
    return session === undefined ? refuse(await askToPay(sale)) : enter(sale, session)
  }
  const key = keptKeyOf(sale, credential)
  const run = isReusable(credential) ? undefined : till.runs.stateOf(key)
  if (run === 'running') return refuse(problemAnswer('delivery-in-progress', 5))
  const signature = payerSignatureOf(header)
  const kept = await serveKept(sale, credential, signature)
  if (kept !== undefined) return { kind: 'refused', ...kept }
  if (run === 'unsold') return refuse(problemAnswer('duplicate-payment'))
  if (till.abandoned.isOver(claimedPayer(credential))) return refuse(problemAnswer('too-many-abandoned-requests', 60))
  const claim = claimOf(sale, credential)
  if (claim.kind === 'replay') return refuse(claim.answer)
  if (claim.kind === 'duplicate') return admitAgain(sale, credential, signature)
  if (claim.kind === 'conflict') return refuse(problemAnswer('payment-identifier-conflict'))
  const seen = { protocol: credential.protocol, contentType: header('content-type'), look: request.look }
  return reporting(sale, seen, await verify(sale, credential, claim, signature))
}

type Claimed = Extract<Claim, { kind: 'claimed' }> | { readonly kind: 'nameless'; readonly free: () => void }

function claimOf(sale: Sale, credential: Credential): Exclude<Claim, { kind: 'claimed' }> | Claimed {
  const id = credential.protocol === 'x402' ? credential.paymentId : undefined
  if (id === undefined) return { kind: 'nameless', free: () => {} }
  const said = JSON.stringify([credential.value, sale.method, sale.resource, sale.digest])
  return sale.till.replays.claim({ id, fingerprint: sha256(bytesOf(said)).join() })
}

async function verify(
  sale: Sale,
  credential: Credential,
  claim: Claimed,
  signature: PayerSignature | undefined,
): Promise<Admission> {
  const { runs, purser, onFault } = sale.till
  const key = keptKeyOf(sale, credential)
  const verifiedAt = performance.now()
  if (!isReusable(credential) && !runs.begin(key)) {
    claim.free()
    return refuse(problemAnswer('delivery-in-progress', 5))
  }
  try {
    const verification = await purser.payments.verify(requestOf(sale, credential))
    const keep = claim.kind === 'claimed' ? claim.keep : undefined
    const { free } = claim
    return paid(purchaseOf(sale, credential, { verification, verifiedAt, keep, free }), claim)
  } catch (error) {
    runs.end(key, 'over')
    claim.free()
    const refusal = refusalIn(error, credential)
    if (refusal !== undefined) return refuse(finalRefusal(refusal) ?? (await askToPay(sale, refusal)))
    if (error instanceof ConflictError && error.code === 'duplicate-payment')
      return admitAgain(sale, credential, signature)
    if (error instanceof ConflictError && error.code === 'payment-identifier-conflict')
      return refuse(problemAnswer(error.code))
    onFault({ stage: 'verify', error })
    if (isMisconfigured(error)) return refuse(problemAnswer('payments-misconfigured'))
    return refuse(problemAnswer(movesAtVerify(credential) ? 'settlement-unavailable' : 'payments-unavailable', 5))
  }
}

function requestOf({ till, route, price, resource, method, digest }: Sale, credential: Credential): VerifyAsked {
  return {
    protocol: credential.protocol,
    credential: credential.value,
    price,
    currency: 'USD',
    ...till.payee,
    resource,
    method,
    ...(route.description !== undefined && { description: route.description }),
    ...(digest !== undefined && { digest }),
    reportsDelivery: true,
  }
}

/** Why the credential itself is bad, or undefined when the error is about anything else. */
function refusalIn(error: unknown, credential: Credential): Refusal | undefined {
  const { protocol } = credential
  if (error instanceof PaymentRefusedError) {
    const said = error.problem?.message
    const message = typeof said === 'string' ? said : undefined
    return { protocol, reason: error.reason, message, hasMoved: isPush(credential) }
  }
  const unreadable = error instanceof ValidationError && error.errors.some(({ path }) => path === '/credential')
  if (!unreadable) return undefined
  return { protocol, reason: protocol === 'mpp' ? 'malformed-credential' : 'invalid_payload' }
}

function paid(purchase: Purchase, claim: Claimed): Admission {
  const { sale, credential, payment, grant } = purchase
  const { till, route, method } = sale
  const hasMoved = !payment.settlementPending || payment.txHash !== null
  const over = () => till.runs.end(keptKeyOf(sale, credential), 'over')
  const unsold = () => {
    till.runs.end(keptKeyOf(sale, credential), hasMoved ? 'over' : 'unsold')
    claim.free()
  }
  const faulty = (error: Error) => {
    unsold()
    till.onFault({ stage: 'handler', error, payment })
  }
  return {
    kind: 'paid',
    payment,
    session: undefined,
    vault: grant.vault,
    bodyBytesMax: route.bodyBytesMax,
    conclude: () => conclude(purchase).finally(over),
    tooLarge: () => {
      faulty(new RangeError('The answer exceeds bodyBytesMax.'))
      return problemAnswer('response-too-large')
    },
    failed: () => {
      if (payment.txHash === null) return unsold()
      faulty(new Error('The handler failed after the money had moved.'))
    },
    abandon: () => {
      if (hasMoved || (method !== 'GET' && method !== 'HEAD')) return false
      till.abandoned.count(payment.payer)
      unsold()
      return true
    },
  }
}

function refuse(answer: OwnAnswer): Extract<Admission, { kind: 'refused' }> {
  return { kind: 'refused', answer }
}

function bytesOf(data: Uint8Array | string): Uint8Array {
  return typeof data === 'string' ? new TextEncoder().encode(data) : data
}

/** Purser takes no longer URL; a caller who sends one is told so, and it is not the provider's fault. */
const resourceLengthMax = 2_048

/** The paid route's URL as payers know it; undefined when the caller's address or host name cannot be one. */
function resourceOf(base: string, target: string): string | undefined {
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
