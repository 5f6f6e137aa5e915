import { checkConnection, createPurser, type Purser } from '../client.ts'
import { challengesAhead, type TakeChallenge } from './challenges.ts'
import { checkWalletOptions } from './check-options.ts'
import type { CredentialHeader } from './contract.ts'
import { openDeliveryReports, type ReportDelivered } from './delivery-reports.ts'
import { type Fault, printFault, quietly, type Undelivered } from './faults.ts'
import { type KeptResponses, openKeptResponses } from './kept-responses.ts'
import type { PaymentProtocol, RouteDefaults, WalletOptions } from './options.ts'
import type { CorsOptions } from './preflight.ts'
import { openReports, type ReportSold } from './registry-report.ts'
import { openReleases, type ReleasePayment } from './releases.ts'
import { openReplays, type Replays } from './replays.ts'
import { type AbandonedRuns, openAbandonedRuns, openRuns, type Runs } from './runs.ts'
import { openGate, type Payee, type SessionGate, sessionSecondsOf } from './sessions.ts'

/** A seller: the client and the defaults that `walletMiddleware` attaches to each request. */
export interface Seller {
  readonly purser: Purser
  /** The paid wallets, as challenge and verify requests name them. */
  readonly payee: Payee
  readonly signOffers: boolean
  readonly publicUrl: string | undefined
  readonly takeChallenge: TakeChallenge
  readonly replays: Replays
  readonly sessions: SessionGate
  readonly onFault: (fault: Fault) => void
  readonly onUndelivered: (undelivered: Undelivered) => void
  readonly kept: KeptResponses
  readonly abandoned: AbandonedRuns
  readonly runs: Runs
  readonly reportDelivered: ReportDelivered
  readonly release: ReleasePayment
  /** Undefined if reports to the registry are off. */
  readonly reportSold: ReportSold | undefined
  readonly defaults: RouteDefaults
}

/** One route's options with all defaults applied. */
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

/** Options of the route override those of the wallet, which override the defaults. */
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
 * Creates a seller at start-up. Throws for an invalid option. Retries are shorter than the client's defaults, because
 * a payer is waiting.
 */
export function createSeller(options: WalletOptions): Seller {
  checkWalletOptions(options)
  checkConnection(options)
  const retry = { retryAfterMsMax: 2_000, delayMsFirst: 200, delayMsMax: 2_000, inProgressMsMax: 0, ...options.retry }
  const { apiKey, baseUrl, allowInsecure, fetch, maxRetries, timeoutMs = 15_000 } = options
  const purser = createPurser({ apiKey, baseUrl, allowInsecure, fetch, maxRetries, timeoutMs, retry })
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
    kept: openKeptResponses({
      bytesMax: options.keptBytesMax ?? 32_000_000,
      msMax: options.keptMsMax ?? 1_800_000,
      onDropped: ({ payment }) => onUndelivered({ payment, isKept: false }),
    }),
    abandoned: openAbandonedRuns(options.abandonedRunsMax ?? 10),
    runs: openRuns(),
    reportDelivered: openDeliveryReports(purser, onFault),
    release: openReleases(purser, onFault),
    reportSold: options.registry === false ? undefined : openReports({ purser, onFault }),
    defaults: options,
  }
}

function payeeOf({ walletId, otherWalletIds = [] }: WalletOptions): Payee {
  return otherWalletIds.length === 0 ? { walletId } : { walletId, otherWalletIds: [...otherWalletIds] }
}

function publicBase(publicUrl: string): string {
  const { origin, pathname } = new URL(publicUrl)
  return origin + pathname.replace(/\/+$/, '')
}
