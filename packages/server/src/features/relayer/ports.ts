import type { Address } from '@purser/protocol'
import type { ChainPorts } from '../../chain/port.ts'
import type { Call, Deps as PlatformDeps } from '../../platform/ctx.ts'
import type { PlanDeps } from '../plans/index.ts'

/** Dependencies of the feature relayer. */
export interface Deps extends PlatformDeps, PlanDeps, ChainPorts {
  /** The account that sends settlements, on every network. */
  readonly settlerAddress: Address
  /** Smallest amount that is settled on chain, in millionths of a US dollar. */
  readonly settleMicroUsdMin: bigint
}

/** Context of one call. */
export interface Ctx extends Deps, Call {}
