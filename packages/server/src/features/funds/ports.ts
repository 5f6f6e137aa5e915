import type { ChainPorts } from '../../chain/port.ts'
import type { ScreeningPort } from '../../partners/screening/port.ts'
import type { Call, Deps as PlatformDeps } from '../../platform/ctx.ts'
import type { DepositBook } from './deposit-book.ts'
import type { ReadFunds } from './snapshot.ts'

/** Dependencies of the feature funds. */
export interface Deps extends PlatformDeps, ChainPorts, ScreeningPort {
  readonly deposits: DepositBook
  readonly readFunds: ReadFunds
}

/** Context of one call. */
export interface Ctx extends Deps, Call {}
