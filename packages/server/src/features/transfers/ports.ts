import type { Address, Chain as ChainName, Hex, Network } from '@purser/protocol'
import type { LaneCall, Receipt } from '../../chain/port.ts'
import type { RouteQuote } from '../../partners/routing/port.ts'
import type { Call, Deps as PlatformDeps } from '../../platform/ctx.ts'
import type { Queryable } from '../../platform/db/db.ts'
import type { GuardedFetch } from '../../platform/guarded-fetch.ts'
import type { PaymentId } from '../../platform/ids.ts'
import { type DeclareOperation, operationFor } from '../../platform/operation.ts'
import type { ReserveMemory } from '../../platform/share.ts'
import type { ByOwner } from '../../platform/work/by-owner.ts'
import type { ApprovalDeps } from '../approvals/index.ts'
import type { Coin, Snapshot } from '../funds/index.ts'
import type { DueCursors } from '../plans/index.ts'
import type { Gas, PolicyOperation, SourceWallet } from '../wallets/index.ts'
import type { ReportedState } from './outcome-store.ts'
import type { NewTransfer } from './schema.ts'
import type { TransferId, TransferPurpose, TransferRow } from './store.ts'
import type { UnreportedPlace } from './unreported-store.ts'

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
  /** For a payment: the caller that has it signed. */
  readonly signedBy?: string
  /** For a payment: the URL that it is for, without its query. */
  readonly resource?: string | null
  /** The refund that it pays, which its approval shows; undefined for any other transfer. */
  readonly refund?: RefundNote | undefined
  /** The state that its caller gets before there is an outcome; undefined if the caller waits for it. */
  readonly reportedState: ReportedState | undefined
}

/** The refund that a transfer pays. */
export interface RefundNote {
  readonly paymentId: PaymentId
  readonly reason: string | null
}

/** A caller's own intent, with its action in the audit log. */
export type OwnIntent = Intent & { readonly action: string }

/** A transfer that is stored. */
export interface RecordedTransfer {
  readonly transferId: TransferId
  /** Whether it waits for an approval, so that nothing of it begins. */
  readonly isForApproval: boolean
}

/** The callers of this process that wait for the outcome of a transfer. */
export interface OutcomeWaiters {
  /**
   * Resolves when a block has decided the transfer, or after `waitMs` milliseconds. Returns its state if that is stored as reported.
   */
  wait(transferId: TransferId, waitMs: number): Promise<TransferRow | undefined>
  /** Whether any caller waits for the transfer. The transaction that stores its outcome can then store that it is reported. */
  isAwaited(transferId: TransferId): boolean
  /** Resolves the waits for transfers that are stored as reported in this state. Call it after that commit. */
  report(transfers: readonly TransferRow[]): void
  /** Reads the transfers that are waited for at once. Call it after a commit that may have decided some. Other processes poll. */
  wake(): void
  /** Resolves the waits for transfers that a block has decided. Call it after that commit. */
  resolve(transferIds: readonly TransferId[]): void
}

/** State that the feature keeps in memory for the concurrent requests of one process. `createTransferPorts` makes it. */
export interface TransferPorts {
  /**
   * Stores a transfer: its rows, first nonce, spend-policy use, audit record and Idempotency-Key commit together. Concurrent transfers of a
   * tenant share a transaction. Throws the transfer's refusal; `insufficient-balance` also if another request has reserved the money since
   * the transfer was planned.
   */
  readonly recordTransfer: (intent: OwnIntent) => Promise<RecordedTransfer>
  readonly outcomeWaiters: OutcomeWaiters
  /**
   * Returns the current state of a transfer for the response to its caller, and stores that this state was reported, so that an event reports
   * a different outcome. Concurrent callers share a transaction.
   */
  readonly reportState: (transferId: TransferId) => Promise<TransferRow>
  /** Limits the requests about transfers in progress, by partner, and the steps of transfers, by network. */
  readonly followedTransfers: ByOwner
  /** Cursors of the lists of due transfers: the last organisation of each list. */
  readonly followedCursors: DueCursors
  /** Cursors of the lists of token approvals to check, by network: the last organisation of each list. */
  readonly revokedCursors: DueCursors
  /** The block after which the search for replaced blocks continues, by network. */
  readonly awaitedCursors: Map<string, bigint>
  /** The transfer after which the next list of ends without a response continues. */
  readonly unreportedPlace: UnreportedPlace
  /** Limits concurrent starts of approved transfers, by network and partner. */
  readonly begunTransfers: ByOwner
}

/** Dependencies of the feature transfers. */
export interface Deps extends PlatformDeps, ApprovalDeps, TransferPorts {
  /** Milliseconds for which a transfer waits for its block before the response is `pending`. */
  readonly transferWaitMs: number
  /** Whether a transaction made a customer's payment: what it moved came from no partner. */
  readonly isCustomerPayment: (
    db: Queryable,
    network: Network,
    receipt: Pick<Receipt, 'transactionHash' | 'logs'>,
  ) => Promise<boolean>
  /** Fetches what wallets pay for. */
  readonly sellerFetch: GuardedFetch
  /** Reserves memory for what sellers respond. */
  readonly reserveResponse: ReserveMemory
}

/** Context of one call. */
export interface Ctx extends Deps, Call {}

export const operation: DeclareOperation<Deps> = operationFor()

/** A planned transaction, with the fields that custody and the lane need. */
export interface PlannedStep {
  readonly kind: 'top-up' | 'send' | 'approve' | 'partner'
  readonly sender: Address
  readonly to: Address
  readonly data: Hex
  readonly value: bigint
  readonly gasLimit: bigint
  /** On Tempo: the token that pays its fee, and the calls that run before it in its transaction. */
  readonly feeToken?: Address | undefined
  readonly callsBefore?: readonly LaneCall[]
}

/** A transfer that the wallet could afford when its snapshot was read. */
export interface TransferPlan {
  readonly source: SourceWallet
  readonly network: Network
  readonly fromChain: ChainName
  readonly target: Network
  readonly coin: Coin
  readonly toCoin: Coin
  readonly rawAmount: bigint
  /** The wallet's balances, against which the reservation is evaluated. */
  readonly snapshot: Snapshot
  /** Empty if the settler sends a message that the child signs. */
  readonly steps: readonly PlannedStep[]
  /** At most, in the smallest unit of `feeCoin`. */
  readonly rawFee: bigint
  readonly feeCoin: Coin
  /** At most, what the master pays to complete the transfer on the target chain; undefined if nothing is sent there. */
  readonly claimGas?: Gas | undefined
  readonly route: 'direct' | 'partner-swap' | 'partner-bridge'
  readonly routeReason: string
  /** The partner's quote; undefined for `direct`. */
  readonly quote: RouteQuote | undefined
}
