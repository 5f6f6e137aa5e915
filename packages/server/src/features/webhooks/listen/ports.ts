import type { Listeners } from './listeners.ts'

declare module '../../../platform/ctx.ts' {
  interface Ports {
    /** The streams of events that this process holds open. */
    readonly listeners: Listeners
  }
}
