import type { Call, Deps as PlatformDeps } from '../../platform/ctx.ts'
import { type DeclareOperation, operationFor } from '../../platform/operation.ts'
import type { PlanDeps } from '../plans/index.ts'

/** Dependencies of the feature organisations. */
export interface Deps extends PlatformDeps, PlanDeps {}

/** Context of one call. */
export interface Ctx extends Deps, Call {}

export const operation: DeclareOperation<Deps> = operationFor()
