import type { Address, Hex, NetworkName } from '@purser/protocol'
import type { Tenant } from '../../platform/ctx.ts'
import type { Queryable } from '../../platform/db/db.ts'

/** A query for a token of a managed wallet, as of a block. */
export interface HoldQuestion {
  readonly tenant: Tenant
  readonly walletId: string
  readonly network: NetworkName
  readonly token: Address
  /** Deposits of later blocks do not count, since the balance from which they are subtracted does not include them. */
  readonly upTo: bigint
  /** Hash of that block. Deposits that were booked in another block at its height do not answer the query. */
  readonly upToHash?: Hex | undefined
}

/** Amounts in the token's smallest unit. */
export interface AmountOnHold {
  /** The rest of flagged money. */
  readonly frozen: bigint
  /** Money from senders that screening has not cleared, and money from before deposits were booked that no rescan has booked since. */
  readonly unscreened: bigint
  /** Other money in blocks that are not final. */
  readonly notFinal: bigint
  /** Whether the deposits of the chain with the block `upTo` are booked, as far as is known: not while the watcher is at another fork. */
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
