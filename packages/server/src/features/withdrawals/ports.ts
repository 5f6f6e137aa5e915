import type { BridgeWebhooksPort } from '../../partners/offramp/bridge-webhook.ts'
import type { OffRampsPort } from '../../partners/offramp/port.ts'
import type { Call, Deps as PlatformDeps } from '../../platform/ctx.ts'
import { type DeclareOperation, operationFor } from '../../platform/operation.ts'
import type { TransferDeps } from '../transfers/index.ts'

/** Dependencies of the feature withdrawals. */
export interface Deps extends PlatformDeps, TransferDeps, OffRampsPort, BridgeWebhooksPort {}

/** Context of one call. */
export interface Ctx extends Deps, Call {}

export const operation: DeclareOperation<Deps> = operationFor()
