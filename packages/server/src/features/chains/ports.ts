import type { ChainPorts } from '../../chain/port.ts'
import type { Call, Deps as PlatformDeps } from '../../platform/ctx.ts'
import { type DeclareOperation, operationFor } from '../../platform/operation.ts'

/** Dependencies of the feature chains. */
export interface Deps extends PlatformDeps, ChainPorts {}

/** Context of one call. */
export interface Ctx extends Deps, Call {}

export const operation: DeclareOperation<Deps> = operationFor()
