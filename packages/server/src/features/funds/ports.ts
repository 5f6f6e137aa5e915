import type { Address, NetworkName } from '@purser/protocol'
import type { Tenant } from '../../platform/ctx.ts'
import type { Queryable } from '../../platform/db/db.ts'

/** A token of a managed wallet, at a block. */
export interface HoldQuestion {
  readonly tenant: Tenant
  readonly walletId: string
  readonly network: NetworkName
  readonly token: Address
  /** Deposits of later blocks do not count, since the balance that they are subtracted from does not have them. */
  readonly upTo: bigint
}

/** Amounts in the token's smallest unit. */
export interface AmountOnHold {
  /** What is left of flagged money. */
  readonly frozen: bigint
  /** What came from senders that screening has not cleared. */
  readonly unscreened: bigint
  /** What is neither of both and stands in a block that is not final. */
  readonly notFinal: bigint
}

/** What the watcher of deposits knows. */
export interface DepositBook {
  /** The newest block whose deposits are booked; undefined before the first. */
  bookedTo(db: Queryable, network: NetworkName): Promise<bigint | undefined>
  /** What is on hold, in the order of the questions. */
  amountsOnHold(db: Queryable, questions: readonly HoldQuestion[]): Promise<readonly AmountOnHold[]>
}

declare module '../../platform/ctx.ts' {
  interface Ports {
    readonly deposits: DepositBook
  }
}
