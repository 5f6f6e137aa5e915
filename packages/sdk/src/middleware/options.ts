import { createPurser, type Purser, type PurserOptions } from '../client.ts'
import type { Settlement, VerifiedPayment } from '../payments.ts'
import { type AbandonedRuns, openAbandonedRuns } from './abandoned-runs.ts'
import { challengesAhead, type TakeChallenge } from './challenges.ts'
import { checkWalletOptions } from './check-options.ts'
import type { CredentialHeader } from './contract.ts'
import { openDeliveryReports, type ReportDelivered } from './delivery-reports.ts'
import { type KeptAnswers, openKeptAnswers } from './kept-answers.ts'
import type { CorsOptions } from './preflight.ts'
import { openReports, type ReportSold } from './registry-report.ts'
import { openReplays, type Replays } from './replays.ts'
import { openRuns, type Runs } from './runs.ts'
import { openGate, type SessionGate, sessionSecondsOf } from './sessions.ts'

/** What the provider is told when a paid request could not be served as it should; the payer sees none of it. */
export interface Fault {
  readonly stage: 'challenge' | 'verify' | 'handler' | 'settle' | 'delivery' | 'session' | 'registry'
  readonly error: unknown
  readonly payment?: VerifiedPayment | undefined
  /** Settles the payment after all; asking again is safe. Present when whether it was settled is not known. */
  readonly settleAgain?: (() => Promise<Settlement>) | undefined
}

/** A payment that was settled, or may be, and whose answer did not reach the payer. */
export interface Undelivered {
  readonly payment: VerifiedPayment
  /** The answer waits for the same credential. If false it was given up: unless the payment is served by a rerun, it is yours to refund (`payments.refund`). */
  readonly isKept: boolean
}

/** A way to be paid. */
export type PaymentProtocol = 'x402' | 'mpp'

/** What may be said for all paid routes at once, or for one of them. */
export interface RouteDefaults {
  readonly description?: string | undefined
  readonly mimeType?: string | undefined
  /**
   * What to do when a block shows the money moving and the outcome is not known for good in time, since blocks may still be undone. `release`
   * (default) gives the answer out; `hold` waits up to `holdMsMax` and then answers 503. A payment that no block shows yet is always held.
   */
  readonly onPending?: 'release' | 'hold' | undefined
  /** 60 s when left out. */
  readonly holdMsMax?: number | undefined
  /**
   * The handler's answer is kept back until it is paid for, up to this size; 10 MB when left out. A larger one is a 500
   * and not charged, and an endless stream cannot be sold this way.
   */
  readonly bodyBytesMax?: number | undefined
  /**
   * Pass without paying; none when left out. A `HEAD` runs the handler of `GET`, so it is sold like it. `OPTIONS` never
   * reaches the handler: it is answered here.
   */
  readonly freeMethods?: readonly string[] | undefined
  /** Which origins' scripts may pay here. Preflights are answered, and answers made readable; left out, that is your own middleware's. */
  readonly cors?: CorsOptions | undefined
  /**
   * What a 402 offers and which payments are taken; both when left out. With MPP on Tempo the money may have moved before
   * the handler runs: when the handler fails then, `onFault` is told, and what is owed to the payer is yours to settle.
   */
  readonly protocols?: readonly PaymentProtocol[] | undefined
  /**
   * Where MPP clients are told to put their credential; `Authorization` when left out. `Payment-Authorization` keeps
   * `Authorization: Bearer` free for keys of your own. A credential in either is taken.
   */
  readonly credentialHeader?: CredentialHeader | undefined
  /**
   * Whether one payment buys several calls: the answer that was paid for carries `X-Service-Session-Id`, and requests that bring
   * it back are served without another payment. A session opens every route that accepts sessions at the same host for the same
   * wallet, whatever each costs: give routes of very different prices wallets of their own. Give `publicUrl`, too: without it the
   * caller's own `Host` header says which host the session is for.
   */
  readonly acceptSessions?: boolean | undefined
  /** How long a session is good: `30m`, `24h`, `7d`, or whole seconds; a minute to a week, a day when left out. */
  readonly sessionTtl?: string | number | undefined
}

export interface WalletOptions extends RouteDefaults, PurserOptions {
  /** Who is paid: a `byw_`, `mwt_` or `cad_` id. */
  readonly walletId: string
  /**
   * Further wallets of yours, on other networks, that may be paid instead: one 402 offers them all. A wallet on Base with
   * one on Tempo takes every client there is. At most three.
   */
  readonly otherWalletIds?: readonly string[] | undefined
  /**
   * Whether the x402 challenge is signed (extension offer-receipt), so that a payer can prove what was asked; about 600
   * bytes more for each offer. Receipts are signed in any case.
   */
  readonly signOffers?: boolean | undefined
  /**
   * Where payers reach this server, such as `https://api.example.com`. Behind a proxy it must be given; without it the
   * `Host` header, which the caller writes, names the resource.
   */
  readonly publicUrl?: string | undefined
  /** Challenges fetched with one call; 1 when left out. */
  readonly challengeBatch?: number | undefined
  /**
   * How long an answer sold to a payer who named his payment (x402 extension `payment-identifier`) is kept for a repeat;
   * 5 minutes when left out.
   */
  readonly replayTtlMs?: number | undefined
  /**
   * `false`: Purser's registry is not told which routes are sold here. It is told in the background, with names and kinds of
   * headers and parameters, never a value.
   */
  readonly registry?: boolean | undefined
  /**
   * An answer whose payment may have been settled, and which did not leave, is kept for the same credential: so many bytes
   * in all (32 MB when left out) and so long (30 minutes when left out).
   */
  readonly keptBytesMax?: number | undefined
  readonly keptMsMax?: number | undefined
  /** How many runs of a handler one payer may abandon in a minute, without paying, before 429; 10 when left out. */
  readonly abandonedRunsMax?: number | undefined
  /** Called with each payment that may be settled and whose answer did not reach the payer. */
  readonly onUndelivered?: ((undelivered: Undelivered) => void) | undefined
  /** Told of every fault; prints one line when left out. */
  readonly onFault?: ((fault: Fault) => void) | undefined
}

export interface PayOptions<R> extends RouteDefaults {
  /** Decimal USD, such as `'0.01'`: text, since a float is not money. */
  readonly price: string | ((request: R) => string | Promise<string>)
  readonly currency?: 'USD' | undefined
  /** The caller's address, so that Purser limits the challenges of one caller. Without effect with `challengeBatch`. */
  readonly clientIp?: ((request: R) => string | undefined) | undefined
  /**
   * The body of the request, byte for byte as it came. With it a payment is good for that body alone. Its challenges are
   * never fetched ahead, and it runs before anything is paid: bound its size.
   */
  readonly bindBody?: ((request: R) => Uint8Array | string | Promise<Uint8Array | string>) | undefined
}

/** The wallets of a till. */
export interface Payee {
  readonly walletId: string
  readonly otherWalletIds?: string[]
}

/** The client and the defaults that `walletMiddleware` puts on each request. */
export interface Till {
  readonly purser: Purser
  /** Who is paid, as challenge and verify are told. */
  readonly payee: Payee
  readonly signOffers: boolean
  readonly publicUrl: string | undefined
  readonly takeChallenge: TakeChallenge
  readonly replays: Replays
  readonly sessions: SessionGate
  readonly onFault: (fault: Fault) => void
  readonly onUndelivered: (undelivered: Undelivered) => void
  readonly kept: KeptAnswers
  readonly abandoned: AbandonedRuns
  readonly runs: Runs
  readonly reportDelivered: ReportDelivered
  /** Undefined where the registry is told of nothing. */
  readonly reportSold: ReportSold | undefined
  readonly defaults: RouteDefaults
}

/** One route's options with nothing left open. */
export interface Route {
  readonly description: string | undefined
  readonly mimeType: string | undefined
  readonly onPending: 'release' | 'hold'
  readonly holdMsMax: number
  readonly bodyBytesMax: number
  readonly freeMethods: readonly string[]
  readonly cors: CorsOptions | undefined
  readonly protocols: readonly PaymentProtocol[]
  readonly credentialHeader: CredentialHeader
  readonly acceptSessions: boolean
  readonly sessionSeconds: number | undefined
}

const bothProtocols: readonly PaymentProtocol[] = ['x402', 'mpp']

/** The route's own word first, then the wallet's, then ours. */
export function routeOf(defaults: RouteDefaults, own: RouteDefaults): Route {
  return {
    description: own.description ?? defaults.description,
    mimeType: own.mimeType ?? defaults.mimeType,
    onPending: own.onPending ?? defaults.onPending ?? 'release',
    holdMsMax: own.holdMsMax ?? defaults.holdMsMax ?? 60_000,
    bodyBytesMax: own.bodyBytesMax ?? defaults.bodyBytesMax ?? 10_000_000,
    freeMethods: own.freeMethods ?? defaults.freeMethods ?? [],
    cors: own.cors ?? defaults.cors,
    protocols: own.protocols ?? defaults.protocols ?? bothProtocols,
    credentialHeader: own.credentialHeader ?? defaults.credentialHeader ?? 'Authorization',
    acceptSessions: own.acceptSessions ?? defaults.acceptSessions ?? false,
    sessionSeconds: sessionSecondsOf(own.sessionTtl ?? defaults.sessionTtl),
  }
}

/**
 * Opens the till once, when the server starts: a wrong option is thrown here, not at the first payer. Retries are
 * shorter than the client's own, since a payer is waiting.
 */
export function openTill(options: WalletOptions): Till {
  checkWalletOptions(options)
  const retry = { retryAfterMsMax: 2_000, delayMsFirst: 200, delayMsMax: 2_000, ...options.retry }
  const purser = createPurser({ ...options, timeoutMs: options.timeoutMs ?? 15_000, retry })
  const onFault = quietly('onFault', options.onFault ?? printFault)
  const onUndelivered = quietly('onUndelivered', options.onUndelivered ?? (() => {}))
  return {
    purser,
    payee: payeeOf(options),
    signOffers: options.signOffers ?? false,
    publicUrl: options.publicUrl === undefined ? undefined : publicBase(options.publicUrl),
    takeChallenge: challengesAhead(purser, options.challengeBatch ?? 1),
    replays: openReplays(options.replayTtlMs ?? 300_000),
    sessions: openGate(purser, payeeOf(options)),
    onFault,
    onUndelivered,
    kept: openKeptAnswers({
      bytesMax: options.keptBytesMax ?? 32_000_000,
      msMax: options.keptMsMax ?? 1_800_000,
      onDropped: ({ purchase: { payment } }) => onUndelivered({ payment, isKept: false }),
    }),
    abandoned: openAbandonedRuns(options.abandonedRunsMax ?? 10),
    runs: openRuns(),
    reportDelivered: openDeliveryReports(purser, onFault),
    reportSold: options.registry === false ? undefined : openReports({ purser, onFault }),
    defaults: options,
  }
}

function payeeOf({ walletId, otherWalletIds = [] }: WalletOptions): Payee {
  return otherWalletIds.length === 0 ? { walletId } : { walletId, otherWalletIds: [...otherWalletIds] }
}

/** A log that fails must not change what becomes of a payment. */
function quietly<T>(name: string, listener: (event: T) => void): (event: T) => void {
  return (event) => {
    try {
      listener(event)
    } catch {
      console.error(`purser: ${name} threw`)
    }
  }
}

function publicBase(publicUrl: string): string {
  const { origin, pathname } = new URL(publicUrl)
  return origin + pathname.replace(/\/+$/, '')
}

function printFault({ stage, error, payment }: Fault): void {
  const said = error instanceof Error ? `${error.name}: ${error.message}` : 'something that is not an error was thrown'
  const requestId = error instanceof Object && 'requestId' in error ? ` ${error.requestId}` : ''
  console.error(
    `purser: ${stage} failed${payment === undefined ? '' : ` for ${payment.paymentId}`}: ${said}${requestId}`,
  )
}
