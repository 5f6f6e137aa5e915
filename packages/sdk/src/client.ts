import { isConfidential } from '@purser/protocol/confidential'
import { accountOf } from './account.ts'
import type { Environment } from './api-keys.ts'
import { approvalsOf } from './approvals.ts'
import { billingOf } from './billing.ts'
import {
  must,
  mustBooleans,
  mustCount,
  mustFunctions,
  mustKey,
  mustKnow,
  mustNames,
  mustOptions,
  mustTexts,
  mustWebAddress,
  type Named,
} from './check.ts'
import { facilitatorOf } from './facilitator.ts'
import { organisationsOf } from './organisations.ts'
import { csvParts, listing } from './paging.ts'
import { paymentsOf } from './payments.ts'
import { registryOf } from './registry.ts'
import { requestsOf } from './requests.ts'
import { defaultRetryPolicy, type RetryPolicy } from './retry.ts'
import { sessionsOf } from './sessions.ts'
import { testingOf } from './testing.ts'
import { transfersOf } from './transfers.ts'
import { type Method, type RequestOptions, type TransportSettings, transport } from './transport.ts'
import { vaultsOf } from './vaults.ts'
import { chainsOf, walletsOf } from './wallets.ts'
import { eventsOf, webhooksOf } from './webhook-endpoints.ts'
import { withdrawalsOf } from './withdrawals.ts'

/** Options of a client with an API key. */
export interface PurserOptions extends ConnectionOptions {
  /** `svc_test_sk_…` or `svc_live_sk_…`. A secret: keep it out of browsers and logs. */
  readonly apiKey: string
  /**
   * Allows plain HTTP to a host other than this machine. Others on the network can then read the key and use it.
   * The option of the same name of `createPayingFetch` is about sellers.
   */
  readonly allowInsecure?: boolean | undefined
}

/** Options of a client in a browser, for the person whose sign-in cookie the browser has. */
export interface SessionOptions extends ConnectionOptions {
  readonly session: BrowserSession
}

/** The organisation and environment that a signed-in person works in. */
export interface BrowserSession {
  /** `org_…`; left out for calls that concern the person alone, such as `account.get`. */
  readonly organisationId?: string | undefined
  readonly environment?: Environment | undefined
}

export interface ConnectionOptions {
  /** The address of the service, such as `https://api.example.com`. */
  readonly baseUrl: string
  /** A custom `fetch`, for proxies and tests. */
  readonly fetch?: typeof globalThis.fetch | undefined
  /** Timeout of each attempt. Default: 30 s; 75 s for a payment from a managed wallet and for a transfer. */
  readonly timeoutMs?: number | undefined
  /** Attempts after the first. Default: 2. */
  readonly maxRetries?: number | undefined
  /** The delays between attempts. */
  readonly retry?: Partial<Omit<RetryPolicy, 'maxRetries'>> | undefined
}

export type Purser = ReturnType<typeof createPurser>

/**
 * Returns a client of the service with one method per operation, named by its id. All attempts of a POST carry the
 * same Idempotency-Key, so a lost response cannot move money twice. Anything but a success is thrown as a
 * PurserError.
 *
 * @example
 * import { createPurser } from '@purser/sdk'
 *
 * const purser = createPurser({ apiKey: process.env.PURSER_API_KEY ?? '', baseUrl: 'https://pay.example.com' })
 * const challenge = await purser.payments.challenge({
 *   walletId: 'byw_01h455vb4pex5vsknk084sn02q',
 *   resource: 'https://api.example.com/forecast',
 *   price: '0.01',
 * })
 */
export function createPurser(options: PurserOptions | SessionOptions) {
  const { send, open } = transport(settingsOf(options))
  return {
    payments: paymentsOf(send),
    sessions: sessionsOf(send),
    vaults: vaultsOf(send, open),
    facilitator: facilitatorOf(send),
    organisations: organisationsOf(send),
    account: accountOf(send),
    billing: billingOf(send),
    registry: registryOf(send),
    webhooks: webhooksOf(send),
    events: eventsOf(send, open),
    test: testingOf(send),
    wallets: walletsOf(send),
    transfers: transfersOf(send),
    withdrawals: withdrawalsOf(send),
    approvals: approvalsOf(send),
    requests: requestsOf(send),
    chains: chainsOf(send),
    /**
     * Calls any operation, including those without a method in this version. Returns the parsed body, or undefined if
     * there is none.
     */
    request: async (method: Method, path: `/${string}`, request?: RequestOptions): Promise<unknown> =>
      (await send(method, path, request)).body,
    /** Lists any paged operation, including those without a method in this version. */
    list: (path: `/${string}`, { query, ...options }: Omit<RequestOptions, 'body' | 'idempotencyKey'> = {}) =>
      listing<unknown>(send, path, query, options),
    /**
     * Reads a list of payment logs, wallet transactions or transfers as CSV, all its pages. Joined, the texts are one
     * file: only the first one has the row of column names.
     */
    csv: (path: `/${string}`, { query, ...options }: Omit<RequestOptions, 'body' | 'idempotencyKey'> = {}) =>
      csvParts(send, path, query, options),
  }
}

/** Options of the connection with an API key. */
export const clientOptions: Named<PurserOptions> = {
  apiKey: true,
  baseUrl: true,
  allowInsecure: true,
  fetch: true,
  timeoutMs: true,
  maxRetries: true,
  retry: true,
}

function settingsOf(options: PurserOptions | SessionOptions): TransportSettings {
  mustKnow(options, { ...clientOptions, session: true })
  checkConnection(options)
  const { baseUrl, maxRetries = defaultRetryPolicy.maxRetries } = options
  const { origin, pathname } = new URL(baseUrl)
  return {
    ...callerOf(options),
    baseUrl: origin + pathname.replace(/\/+$/, ''),
    fetch: options.fetch ?? ((input, init) => fetch(input, init)),
    timeoutMs: options.timeoutMs,
    retry: { ...defaultRetryPolicy, ...options.retry, maxRetries },
  }
}

/** Throws a `TypeError` for an invalid option of the connection. */
export function checkConnection(options: PurserOptions | SessionOptions): void {
  mustOptions(options, 'The first argument')
  const { baseUrl, fetch, timeoutMs, maxRetries, retry } = options
  mustWebAddress('baseUrl', baseUrl, 'https://pay.example.com')
  if (!('session' in options)) mustKeepSecret(options)
  mustFunctions({ fetch })
  mustCount('timeoutMs', timeoutMs, 1)
  mustCount('maxRetries', maxRetries, 0)
  if (retry === undefined) return
  mustOptions(retry, 'retry')
  const delays = ['delayMsFirst', 'delayMsMax', 'retryAfterMsMax', 'inProgressMsMax'] as const
  mustNames('retry', retry, delays, 'option')
  for (const name of delays) mustCount(`retry.${name}`, retry[name], 0)
}

/** Throws a `TypeError` for an address to which the key would be sent in the clear. */
function mustKeepSecret({ baseUrl, allowInsecure = false }: PurserOptions): void {
  mustBooleans({ allowInsecure })
  const remedy =
    'The API key would be sent in the clear. Give an https URL, or http on this machine; or set allowInsecure.'
  must(allowInsecure || isConfidential(new URL(baseUrl)), 'baseUrl', baseUrl, remedy)
}

function callerOf(options: PurserOptions | SessionOptions): Pick<TransportSettings, 'identity' | 'credentials'> {
  if ('session' in options) return { identity: headersOf(options.session), credentials: 'include' }
  const { apiKey } = options
  mustKey('apiKey', apiKey)
  return { identity: { authorization: `Bearer ${apiKey}` } }
}

function headersOf(session: BrowserSession): Record<string, string> {
  mustOptions(session, 'session')
  mustNames('session', session, ['organisationId', 'environment'], 'option')
  const { organisationId, environment } = session
  mustTexts({ 'session.organisationId': organisationId })
  const isKnown = environment === undefined || environment === 'test' || environment === 'live'
  must(isKnown, 'session.environment', environment, 'Give "test" or "live".')
  return {
    ...(organisationId !== undefined && { 'x-service-organisation': organisationId }),
    ...(environment !== undefined && { 'x-service-environment': environment }),
  }
}
