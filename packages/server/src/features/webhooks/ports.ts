import type { Reach } from '../../platform/customer-url.ts'
import type { GuardedFetch } from '../../platform/guarded-fetch.ts'

declare module '../../platform/ctx.ts' {
  interface Ports {
    /** The door to URLs that customers gave. */
    readonly guardedFetch: GuardedFetch
    /** How far such a URL may lead on this deployment. */
    readonly customerReach: Reach
    /** Told after a commit that deliveries wait, where this process delivers. Must not throw. */
    readonly deliveriesWaiting?: () => void
  }
}
