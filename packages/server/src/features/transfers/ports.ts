import type { Call, Deps as PlatformDeps } from '../../platform/ctx.ts'
import type { GuardedFetch } from '../../platform/guarded-fetch.ts'
import { type DeclareOperation, operationFor } from '../../platform/operation.ts'
import type { ApprovalDeps } from '../approvals/index.ts'

/** What transfers needs. */
export interface Deps extends PlatformDeps, ApprovalDeps {
  /** How long a transfer waits for its block before the response is `pending`. */
  readonly transferWaitMs: number
  /** Fetches what wallets pay for. */
  readonly sellerFetch: GuardedFetch
}

/** Context of one call. */
export interface Ctx extends Deps, Call {}

export const operation: DeclareOperation<Deps> = operationFor()
