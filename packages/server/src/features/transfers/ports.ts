import type { AccountLanes } from '../../chain/port.ts'

declare module '../../platform/ctx.ts' {
  interface Ports {
    /** Sends what managed wallets send. */
    readonly accountLanes: AccountLanes
    /** How long a transfer waits for its block before it is answered as pending. */
    readonly transferWaitMs: number
  }
}
