import type { GuardedFetch } from '../../platform/guarded-fetch.ts'

declare module '../../platform/ctx.ts' {
  interface Ports {
    /** How long a transfer waits for its block before the response is `pending`. */
    readonly transferWaitMs: number
    /** Fetches what wallets pay for. */
    readonly sellerFetch: GuardedFetch
  }
}
