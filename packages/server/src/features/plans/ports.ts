import type { ChainPorts } from '../../chain/port.ts'
import type { Call, Deps as PlatformDeps } from '../../platform/ctx.ts'
import type { GasPrices } from './gas-prices.ts'
import type { Recount } from './quotas.ts'

/** Dependencies of the feature plans. */
export interface Deps extends PlatformDeps, ChainPorts {
  /** Counts the stored rows of each kind, for the recount; counters of other kinds are left unchanged. */
  readonly recounts: readonly Recount[]
  /**
   * Most that one organisation's payments, sweeps and gasless transfers may cost the operator per network and UTC day, in
   * billionths of a US dollar.
   */
  readonly settleNanoUsdPerDayMax: bigint
  readonly gasPrices: GasPrices
}

/** Context of one call. */
export interface Ctx extends Deps, Call {}
