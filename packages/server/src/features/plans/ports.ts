import type { GasPrices } from './gas-prices.ts'
import type { Recount } from './recount.ts'

declare module '../../platform/ctx.ts' {
  interface Ports {
    /** How each room counts what it holds; a kind that is not here is left as its counter stands. */
    readonly recounts: readonly Recount[]
    /** What one organisation's payments, sweeps and gasless transfers may cost the operator per network and UTC day, in billionths of a US dollar. */
    readonly settleNanoUsdPerDayMax: bigint
    readonly gasPrices: GasPrices
  }
}
