import type { Address, Hex, NetworkName } from '@purser/protocol'
import type { Tenant } from '../../platform/ctx.ts'
import type { Queryable } from '../../platform/db/db.ts'

/** A query for a token of a managed wallet, as of a block. */
export interface HoldQuestion {
  readonly tenant: Tenant
  readonly walletId: string
  readonly network: NetworkName
  readonly token: Address
  /** The last block whose deposits count. Later ones are not in the balance from which they would be subtracted. */
  readonly upTo: bigint
  /** Hash of that block. If deposits were booked in another block at this height, `isBooked` is false. */
  readonly upToHash?: Hex | undefined
  /** Balance after that block. If given, money that the ledger does not have cannot make flagged money spendable. */
  readonly rawBalance?: bigint | undefined
}

/** Amounts in the token's smallest unit. */
export interface AmountOnHold {
  /** The rest of flagged money. */
  readonly frozen: bigint
  /**
   * - Money from senders that screening has not cleared.
   * - Money from before deposits were booked that no rescan has booked since.
   * - Unbooked money of a wallet from which, by the ledger, flagged money has left.
   */
  readonly unscreened: bigint
  /** Other money in blocks that are not final. */
  readonly notFinal: bigint
  /** Whether the deposits up to the block `upTo` are booked on the same fork; false while the watcher follows another fork. */
  readonly isBooked: boolean
}

/** Reads the deposits that the deposit watcher booked. */
export interface DepositBook {
  /** The newest block whose deposits are booked; undefined before the first. */
  bookedTo(db: Queryable, network: NetworkName): Promise<bigint | undefined>
  /** Waits until the deposits of a block are booked, for `msMax` milliseconds at most. Returns whether they are. */
  isBookedInTime(
    db: Queryable,
    network: NetworkName,
    wanted: { readonly block: bigint; readonly msMax: number },
  ): Promise<boolean>
  /** Amounts on hold, in the order of the queries. */
  amountsOnHold(db: Queryable, questions: readonly HoldQuestion[]): Promise<readonly AmountOnHold[]>
}
