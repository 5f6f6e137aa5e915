import type { Call, Deps as PlatformDeps } from '../../platform/ctx.ts'
import type { GuardedFetch } from '../../platform/guarded-fetch.ts'
import type { PaymentId } from '../../platform/ids.ts'
import { type DeclareOperation, operationFor } from '../../platform/operation.ts'
import type { ApprovalDeps } from '../approvals/index.ts'
import type { PolicyOperation } from '../wallets/index.ts'
import type { Answered } from './outcome-store.ts'
import type { TransferPlan } from './planned.ts'
import type { NewTransfer } from './schema.ts'
import type { TransferId, TransferPurpose, TransferRow } from './store.ts'

/** A planned transfer to be stored. */
export interface Intent {
  readonly ctx: Ctx
  readonly request: NewTransfer
  readonly plan: TransferPlan
  readonly purpose: TransferPurpose
  /**
   * The operation that the spend policy evaluates. The transfer of a withdrawal is not counted again: the withdrawal
   * already was.
   */
  readonly operation: PolicyOperation
  /** For a payment: the nonce of the authorization that the wallet signs, 32 bytes. */
  readonly nonce?: Uint8Array
  /** The refund that it pays, which its approval shows; undefined for any other transfer. */
  readonly refund?: RefundNote | undefined
  /** The state that its caller gets before there is an outcome; undefined if the caller waits for it. */
  readonly answered: Answered | undefined
}

/** The refund that a transfer pays. */
export interface RefundNote {
  readonly paymentId: PaymentId
  readonly reason: string | null
}

/** A caller's own intent, with its action in the audit log. */
export type OwnIntent = Intent & { readonly action: string }

/** The callers of this process that wait for the outcome of a transfer. */
export interface OutcomeWaiters {
  /** Resolves when a block has decided the transfer, or after `waitMs` milliseconds. */
  wait(transferId: TransferId, waitMs: number): Promise<void>
  /** Reads the transfers that are waited for at once. Call it after a commit that may have decided some. Other processes poll. */
  wake(): void
  /** Resolves the waits for transfers that a block has decided. Call it after that commit. */
  resolve(transferIds: readonly TransferId[]): void
}

/** What the feature keeps in memory for the concurrent requests of one process. `createTransferPorts` makes it. */
export interface TransferPorts {
  /**
   * Stores a transfer: its rows, first nonce, spend-policy use, audit record and Idempotency-Key commit together. Concurrent transfers of a
   * tenant share a transaction. Throws the transfer's refusal; `insufficient-balance` also if another request has reserved the money since
   * the transfer was planned.
   */
  readonly recordTransfer: (intent: OwnIntent) => Promise<TransferId>
  readonly outcomeWaiters: OutcomeWaiters
  /**
   * Returns the current state of a transfer for the response to its caller, and stores that this state was reported, so that an event reports
   * a different outcome. Concurrent callers share a transaction.
   */
  readonly answeredState: (transferId: TransferId) => Promise<TransferRow>
}

/** What transfers needs. */
export interface Deps extends PlatformDeps, ApprovalDeps, TransferPorts {
  /** How long a transfer waits for its block before the response is `pending`. */
  readonly transferWaitMs: number
  /** Fetches what wallets pay for. */
  readonly sellerFetch: GuardedFetch
}

/** Context of one call. */
export interface Ctx extends Deps, Call {}

export const operation: DeclareOperation<Deps> = operationFor()
