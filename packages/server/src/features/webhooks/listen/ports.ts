import type { Listeners } from './listeners.ts'

declare module '../../../platform/ctx.ts' {
  interface Ports {
    /** The event streams that this process has open. */
    readonly listeners: Listeners
  }
}
