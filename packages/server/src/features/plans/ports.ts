import type { Recount } from './recount.ts'

declare module '../../platform/ctx.ts' {
  interface Ports {
    /** How each room counts what it holds; a kind that is not here is left as its counter stands. */
    readonly recounts: readonly Recount[]
    /** Gas that one organisation's settlements, sweeps and authorised transfers may use per network and UTC day. */
    readonly settleGasPerDayMax: bigint
  }
}
