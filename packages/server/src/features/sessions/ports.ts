import type { Call, Deps as PlatformDeps } from '../../platform/ctx.ts'
import { type DeclareOperation, operationFor } from '../../platform/operation.ts'
import type { PaymentDeps } from '../payments/index.ts'
import type { VaultDeps } from '../vaults/index.ts'

/** Dependencies of the feature sessions. */
export interface Deps extends PlatformDeps, PaymentDeps, VaultDeps {}

/** Context of one call. */
export interface Ctx extends Deps, Call {}

export const operation: DeclareOperation<Deps> = operationFor()
