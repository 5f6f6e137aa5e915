import type { Chains } from '../../chain/port.ts'
import type { Call, Deps as PlatformDeps } from '../../platform/ctx.ts'
import { type DeclareOperation, operationFor } from '../../platform/operation.ts'
import type { PlanDeps } from '../plans/index.ts'

/** Dependencies of the feature organisations. */
export interface Deps extends PlatformDeps, PlanDeps {
  readonly chains: Chains
  /** Whether anybody with a verified e-mail address may create an account. */
  readonly isSignUpOpen: boolean
}

/** Context of one call. */
export interface Ctx extends Deps, Call {}

export const operation: DeclareOperation<Deps> = operationFor()
