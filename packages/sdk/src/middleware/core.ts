import { contentDigest, sha256 } from '@purser/protocol'
import { ConflictError, PaymentRefusedError, ValidationError } from '../errors.ts'
import type { Verification, VerifiedPayment } from '../payments.ts'
import type { Session } from '../sessions.ts'
import { finalRefusal, type OwnAnswer, problemAnswer, type Refusal } from './answers.ts'
import { askToPay, isMisconfigured, type Sale } from './ask.ts'
import { checkPrice } from './check-options.ts'
import type { VerifyAsked } from './contract.ts'
import { type Credential, findCredential, isPush, movesAtVerify } from './credential.ts'
import { enter } from './enter.ts'
import { grantOf } from './grant.ts'
import type { Look } from './observed.ts'
import { type PayOptions, type Route, routeOf, type Till } from './options.ts'
import { corsHeaders, optionsAnswer } from './preflight.ts'
import { unsettledAnswer } from './receipts.ts'
import { admitAgain, keptKeyOf, serveKept } from './redeem.ts'
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
  | { readonly kind: 'refused'; readonly answer: OwnAnswer }
  | ({ readonly kind: 'paid' } & Paid)

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
export async function admit<R>(till: Till, options: PayOptions<R>, request: PaidRequest<R>): Promise<Admission> {
  const route = routeOf(till.defaults, options)
  const { method, header } = request
  if (method === 'OPTIONS') return refuse(optionsAnswer(route.cors, header))
  return withCors(corsHeaders(route.cors, header), await admitRequest(till, options, route, request))
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
  const signature = payerSignatureOf(header)
  const kept = await serveKept(sale, credential, signature)
  if (kept !== undefined) return refuse(kept)
  const claim = claimOf(sale, credential)
  if (claim.kind === 'replay') return refuse(claim.answer)
  if (claim.kind === 'duplicate') return refuse(problemAnswer('duplicate-payment'))
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
  const verifiedAt = performance.now()
  try {
    const verification = await sale.till.purser.payments.verify(requestOf(sale, credential))
    if (!sale.till.abandoned.isOver(verification.payer))
      return paid(sale, credential, claim, { verification, verifiedAt })
    claim.free()
    return refuse(problemAnswer('too-many-abandoned-requests', 60))
  } catch (error) {
    claim.free()
    const refusal = refusalIn(error, credential)
    if (refusal !== undefined) return refuse(finalRefusal(refusal) ?? (await askToPay(sale, refusal)))
    if (error instanceof ConflictError && error.code === 'duplicate-payment')
      return admitAgain(sale, credential, signature)
    if (error instanceof ConflictError && error.code === 'payment-identifier-conflict')
      return refuse(problemAnswer(error.code))
    sale.till.onFault({ stage: 'verify', error })
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

interface Verified {
  readonly verification: Verification
  readonly verifiedAt: number
}

function paid(sale: Sale, credential: Credential, claim: Claimed, { verification, verifiedAt }: Verified): Admission {
  const { till, route, method } = sale
  const { valid: _, settlementToken, ...payment } = verification
  const unsettled = async (reason: string) => {
    claim.free()
    if (credential.protocol === 'mpp') return askToPay(sale, { protocol: 'mpp', reason })
    return unsettledAnswer(credential, payment.payer, reason)
  }
  const keep = claim.kind === 'claimed' ? claim.keep : undefined
  const { vault, withSession } = grantOf(sale, payment)
  const purchase: Purchase = {
    sale,
    credential,
    payment,
    settlementToken,
    verifiedAt,
    unsettled,
    keep,
    keepForPayer: (answer) => {
      till.onUndelivered({ payment, isKept: true })
      till.kept.keep(keptKeyOf(sale, credential), { answer, purchase })
    },
  }
  const unsold = (error: Error) => {
    claim.free()
    till.onFault({ stage: 'handler', error, payment })
  }
  return {
    kind: 'paid',
    payment,
    session: undefined,
    vault,
    bodyBytesMax: route.bodyBytesMax,
    conclude: async () => withSession(await conclude(purchase)),
    tooLarge: () => {
      unsold(new RangeError('The answer exceeds bodyBytesMax.'))
      return problemAnswer('response-too-large')
    },
    failed: () => {
      if (payment.txHash === null) return claim.free()
      unsold(new Error('The handler failed after the money had moved.'))
    },
    abandon: () => {
      const isUnpaid = payment.settlementPending && (method === 'GET' || method === 'HEAD')
      if (!isUnpaid) return false
      till.abandoned.count(payment.payer)
      claim.free()
      return true
    },
  }
}

/** An admission whose answers a script of an allowed origin may read. */
function withCors(headers: Readonly<Record<string, string>>, admission: Admission): Admission {
  if (Object.keys(headers).length === 0 || admission.kind === 'free') return admission
  if (admission.kind === 'refused')
    return { ...admission, answer: { ...admission.answer, headers: { ...headers, ...admission.answer.headers } } }
  const conclude = async (): Promise<Conclusion> => {
    const conclusion = await admission.conclude()
    if (conclusion.kind === 'release')
      return { ...conclusion, headers: [...conclusion.headers, ...Object.entries(headers)] }
    return { ...conclusion, answer: { ...conclusion.answer, headers: { ...headers, ...conclusion.answer.headers } } }
  }
  return { ...admission, conclude }
}

function refuse(answer: OwnAnswer): Admission {
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
