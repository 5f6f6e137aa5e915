import { accountOf } from './account.ts'
import { billingOf } from './billing.ts'
import { facilitatorOf } from './facilitator.ts'
import { organisationsOf } from './organisations.ts'
import { listing } from './paging.ts'
import { paymentsOf } from './payments.ts'
import { registryOf } from './registry.ts'
import { defaultRetryPolicy, type RetryPolicy } from './retry.ts'
import { sessionsOf } from './sessions.ts'
import { testingOf } from './testing.ts'
import { transfersOf } from './transfers.ts'
import { type Method, type RequestOptions, type TransportSettings, transport } from './transport.ts'
import { vaultsOf } from './vaults.ts'
import { chainsOf, walletsOf } from './wallets.ts'
import { eventsOf, webhooksOf } from './webhook-endpoints.ts'
import { withdrawalsOf } from './withdrawals.ts'

export interface PurserOptions {
  /** `svc_test_sk_…` or `svc_live_sk_…`. A secret: never in a browser, never in a log. */
  readonly apiKey: string
  /** Where the service is, such as `https://api.example.com`. */
  readonly baseUrl: string
  /** Another `fetch`, for proxies and tests. */
  readonly fetch?: typeof globalThis.fetch | undefined
  /** For each attempt; 30 s when left out. */
  readonly timeoutMs?: number | undefined
  /** Attempts after the first; 2 when left out. */
  readonly maxRetries?: number | undefined
  /** How long to wait between attempts. */
  readonly retry?: Partial<Omit<RetryPolicy, 'maxRetries'>> | undefined
}

export type Purser = ReturnType<typeof createPurser>

/**
 * A client of the service: one method per operation, named by its id. A POST carries one Idempotency-Key over all its
 * attempts, so that a lost answer cannot move money twice. Everything but a success is thrown as a PurserError.
 */
export function createPurser(options: PurserOptions) {
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
    chains: chainsOf(send),
    /**
     * Any operation, also one that this version has no method for. Answers the parsed body, undefined when there is
     * none.
     */
    request: async (method: Method, path: `/${string}`, request?: RequestOptions): Promise<unknown> =>
      (await send(method, path, request)).body,
    /** Any list, also one that this version has no method for. */
    list: (path: `/${string}`, { query, ...options }: Omit<RequestOptions, 'body' | 'idempotencyKey'> = {}) =>
      listing<unknown>(send, path, query, options),
  }
}

function settingsOf(options: PurserOptions): TransportSettings {
  const { apiKey, baseUrl, maxRetries = defaultRetryPolicy.maxRetries } = options
  if (!/^[\x21-\x7e]+$/.test(apiKey)) throw new TypeError('apiKey is empty or holds white space or control characters.')
  const { protocol, origin, pathname } = new URL(baseUrl)
  if (protocol !== 'https:' && protocol !== 'http:') throw new TypeError('baseUrl must be an http or https URL.')
  return {
    apiKey,
    baseUrl: origin + pathname.replace(/\/+$/, ''),
    fetch: options.fetch ?? ((input, init) => fetch(input, init)),
    timeoutMs: options.timeoutMs ?? 30_000,
    retry: { ...defaultRetryPolicy, ...options.retry, maxRetries },
  }
}
