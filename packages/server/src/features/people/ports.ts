import type { Call, Deps as PlatformDeps } from '../../platform/ctx.ts'
import { type DeclareOperation, operationFor } from '../../platform/operation.ts'
import type { OrganisationDeps } from '../organisations/index.ts'

/** Dependencies of the feature people. */
export interface Deps extends PlatformDeps, OrganisationDeps {}

/** Context of one call. */
export interface Ctx extends Deps, Call {}

export const operation: DeclareOperation<Deps> = operationFor()
