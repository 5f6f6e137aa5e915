import { PaymentRefusedError, PurserError, RateLimitError, ValidationError } from '../errors.ts'
import type { Verification, VerifiedPayment } from '../payments.ts'
import { challengeAnswer, type OwnAnswer, problemAnswer } from './answers.ts'
import { type Credential, findCredential } from './credential.ts'
import { type PayOptions, type Route, routeOf, type Till } from './options.ts'
import { type Conclusion, conclude } from './settle.ts'

/** A request as the core sees it, whatever the framework. */
export interface PaidRequest<R> {
  readonly method: string
  /** `http://host` as the request named it. */
  readonly origin: string
  /** Path and query as the caller sent them. */
  readonly target: string
  readonly header: (name: string) => string | undefined
  /** The framework's own request, for the provider's functions. */
  readonly own: R
}

/** What to do with a request: let it pass free, answer in the handler's place, or run the handler and then conclude. */
export type Admission =
  | { readonly kind: 'free' }
  | { readonly kind: 'refused'; readonly answer: OwnAnswer }
  | ({ readonly kind: 'paid' } & Paid)

/** A request whose payment is verified and whose handler has not been answered for yet. */
export interface Paid {
  readonly payment: VerifiedPayment
  readonly bodyBytesMax: number
  /** Call once, when the handler succeeded: settles, and says whether its answer may leave. */
  readonly conclude: () => Promise<Conclusion>
  /** The answer when the handler's is larger than may be kept back; the payment stays unsettled. */
  readonly tooLarge: () => OwnAnswer
}

interface Sale {
  readonly till: Till
  readonly route: Route
  readonly price: string
  readonly resource: string
  readonly method: string
  readonly ip: string | undefined
}

/**
 * Decides about a request before its handler runs. It fails closed: without a clear yes from Purser there is no
 * handler, and nothing from inside reaches the payer. Two copies of one credential sent at once: Purser says yes to one
 * of them.
 */
export async function admit<R>(till: Till, options: PayOptions<R>, request: PaidRequest<R>): Promise<Admission> {
  const route = routeOf(till.defaults, options)
  if (route.freeMethods.includes(request.method)) return { kind: 'free' }
  const resource = resourceOf(till.publicUrl ?? request.origin, request.target)
  if (resource === undefined) return refuse(problemAnswer('malformed-request'))
  const credential = findCredential(request.header)
  if (credential === 'ambiguous') return refuse(problemAnswer('ambiguous-payment'))

  const price = typeof options.price === 'string' ? options.price : await options.price(request.own)
  const sale: Sale = { till, route, price, resource, method: request.method, ip: options.clientIp?.(request.own) }
  return credential === 'none' ? refuse(await askToPay(sale)) : verify(sale, credential)
}

async function verify(sale: Sale, credential: Credential): Promise<Admission> {
  const { till, route, price, resource, method } = sale
  try {
    const verification = await till.purser.payments.verify({
      protocol: 'x402',
      credential: credential.value,
      price,
      currency: 'USD',
      walletId: till.walletId,
      resource,
      method,
      ...(route.description !== undefined && { description: route.description }),
    })
    return paid(sale, credential, verification)
  } catch (error) {
    const reason = reasonAgainst(error)
    if (reason !== undefined) return refuse(await askToPay(sale, reason))
    if (error instanceof PurserError && error.code === 'duplicate-payment')
      return refuse(problemAnswer('duplicate-payment'))
    till.onFault({ stage: 'verify', error })
    return refuse(problemAnswer('payments-unavailable', 5))
  }
}

/** Why the credential itself is bad, or undefined when the error is about anything else. */
function reasonAgainst(error: unknown): string | undefined {
  if (error instanceof PaymentRefusedError) return error.reason
  const unreadable = error instanceof ValidationError && error.errors.some(({ path }) => path === '/credential')
  return unreadable ? 'invalid_payload' : undefined
}

async function askToPay(sale: Sale, reason?: string): Promise<OwnAnswer> {
  const { till, route, price, resource, ip } = sale
  try {
    const { x402, x402V1 } = await till.takeChallenge({
      walletId: till.walletId,
      resource,
      price,
      acceptMPP: false,
      ...(route.description !== undefined && { description: route.description }),
      ...(route.mimeType !== undefined && { mimeType: route.mimeType }),
      ...(ip !== undefined && { ip }),
    })
    if (x402 === null) throw new Error('The challenge offers no x402 payment.')
    return challengeAnswer({ x402, x402V1 }, reason)
  } catch (error) {
    if (ip !== undefined && error instanceof RateLimitError)
      return problemAnswer('rate-limit-exceeded', error.retryAfterSeconds ?? 60)
    till.onFault({ stage: 'challenge', error })
    return problemAnswer('payments-unavailable', 5)
  }
}

function paid({ till, route }: Sale, credential: Credential, verification: Verification): Admission {
  const { valid: _, settlementToken, ...payment } = verification
  return {
    kind: 'paid',
    payment,
    bodyBytesMax: route.bodyBytesMax,
    conclude: () => conclude({ till, route, credential, payment, settlementToken }),
    tooLarge: () => {
      till.onFault({ stage: 'handler', error: new RangeError('The answer exceeds bodyBytesMax.'), payment })
      return problemAnswer('response-too-large')
    },
  }
}

function refuse(answer: OwnAnswer): Admission {
  return { kind: 'refused', answer }
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
