import type { Call, Deps as PlatformDeps } from '../../platform/ctx.ts'
import { type DeclareOperation, operationFor } from '../../platform/operation.ts'
import type { WalletDeps } from '../wallets/index.ts'

/** Dependencies of the feature approvals. */
export interface Deps extends PlatformDeps, WalletDeps {}

/** Context of one call. */
export interface Ctx extends Deps, Call {}

export const operation: DeclareOperation<Deps> = operationFor()
