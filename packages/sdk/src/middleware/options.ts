import type { PurserOptions } from '../client.ts'
import type { CredentialHeader } from './contract.ts'
import type { Fault, Undelivered } from './faults.ts'
import type { CorsOptions } from './preflight.ts'

/** A payment protocol. */
export type PaymentProtocol = 'x402' | 'mpp'

/** Options for all paid routes, or for one. */
export interface RouteDefaults {
  readonly description?: string | undefined
  readonly mimeType?: string | undefined
  /**
   * The behavior if the transaction is in a block but not final in time. `release` (default) sends the response; `hold`
   * waits up to `holdMsMax` and then responds with 503. A payment that is not in a block is never released.
   */
  readonly onPending?: 'release' | 'hold' | undefined
  /** Default: 60 s. */
  readonly holdMsMax?: number | undefined
  /**
   * The maximum size of a response, which is buffered until it is paid for. Default: 10 MB. A larger one is a 500 and
   * is not charged. An endless stream cannot be sold this way.
   */
  readonly bodyBytesMax?: number | undefined
  /**
   * Methods that are free. Default: none. `HEAD` runs the handler of `GET`, so it is sold like `GET`. The middleware
   * responds to `OPTIONS`, which never reaches the handler.
   */
  readonly freeMethods?: readonly string[] | undefined
  /**
   * The origins whose scripts may pay. The middleware responds to preflights and sets CORS headers. If omitted, your
   * own middleware must do both.
   */
  readonly cors?: CorsOptions | undefined
  /**
   * The protocols that are offered and accepted. Default: both. With MPP on Tempo the money may move before the
   * handler runs. If the handler then fails, `onFault` is called and you owe the payer a refund.
   */
  readonly protocols?: readonly PaymentProtocol[] | undefined
  /**
   * The header that MPP clients are instructed to use. Default: `Authorization`. `Payment-Authorization` leaves
   * `Authorization: Bearer` to your own keys. Credentials in either header are accepted.
   */
  readonly credentialHeader?: CredentialHeader | undefined
  /**
   * Whether one payment buys several calls. The paid response carries `X-Service-Session-Id`, and requests with that
   * header are served without another payment. A session is valid for every route that accepts sessions at the same
   * host and for the same wallet, whatever its price: use separate wallets for routes with very different prices. Set
   * `publicUrl` as well. Without it, the caller's `Host` header determines the host of the session.
   */
  readonly acceptSessions?: boolean | undefined
  /** The lifetime of a session: `30m`, `24h`, `7d`, or whole seconds, from a minute to a week. Default: a day. */
  readonly sessionTtl?: string | number | undefined
}

export interface WalletOptions extends RouteDefaults, PurserOptions {
  /** The wallet that is paid: a `byw_`, `mwt_` or `cad_` id. */
  readonly walletId: string
  /**
   * Your wallets on other networks that may be paid instead. One 402 offers all of them. A wallet on Base and one on
   * Tempo serve every client. At most three.
   */
  readonly otherWalletIds?: readonly string[] | undefined
  /**
   * Whether the x402 challenge is signed (extension offer-receipt), so that a payer can prove what was offered. Adds
   * about 600 bytes per offer. Receipts are always signed.
   */
  readonly signOffers?: boolean | undefined
  /**
   * The public URL of this server, such as `https://api.example.com`. Required behind a proxy. If omitted, the
   * resource is named by the `Host` header, which the caller controls.
   */
  readonly publicUrl?: string | undefined
  /** The number of challenges fetched with one call. Default: 1. */
  readonly challengeBatch?: number | undefined
  /**
   * Milliseconds for which the response to a payment with an identifier (x402 extension `payment-identifier`) is kept
   * for a repeat. Default: 300,000.
   */
  readonly replayTtlMs?: number | undefined
  /**
   * `false` turns off reports of sold routes to Purser's registry. Reports are sent in the background. They contain
   * names and kinds of headers and parameters, never values.
   */
  readonly registry?: boolean | undefined
  /**
   * Limits for undelivered responses whose payment may have been settled. They are kept for the same credential:
   * total bytes (default 32 MB) and time (default 30 minutes). Over the bytes, the oldest response of the payer with the most bytes is
   * dropped first, even if it is the only one of that payer.
   */
  readonly keptBytesMax?: number | undefined
  readonly keptMsMax?: number | undefined
  /** Handler runs that a payer may abandon per minute before getting a 429. Default: 10. */
  readonly abandonedRunsMax?: number | undefined
  /** Called for each payment that may be settled and whose response did not reach the payer. */
  readonly onUndelivered?: ((undelivered: Undelivered) => void) | undefined
  /** Called with every fault. Default: prints one line. */
  readonly onFault?: ((fault: Fault) => void) | undefined
}

export interface PayOptions<R> extends RouteDefaults {
  /** Decimal USD as text, such as `'0.01'`. */
  readonly price: string | ((request: R) => string | Promise<string>)
  readonly currency?: 'USD' | undefined
  /** The caller's address, so that Purser can limit challenges per caller. Has no effect with `challengeBatch`. */
  readonly clientIp?: ((request: R) => string | undefined) | undefined
  /**
   * Returns the raw request body, which binds the payment to that body. Its challenges are not fetched ahead. It runs
   * before payment, so limit the size.
   */
  readonly bindBody?: ((request: R) => Uint8Array | string | Promise<Uint8Array | string>) | undefined
}
