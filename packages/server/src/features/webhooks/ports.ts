import type { Reach } from '../../platform/customer-url.ts'
import type { GuardedFetch } from '../../platform/guarded-fetch.ts'

declare module '../../platform/ctx.ts' {
  interface Ports {
    /** Fetches URLs that customers gave. */
    readonly guardedFetch: GuardedFetch
    /** Which addresses such a URL may reach on this deployment. */
    readonly customerReach: Reach
    /** Notified after a commit that deliveries are pending, where this process delivers. Must not throw. */
    readonly deliveriesWaiting?: () => void
  }
}
