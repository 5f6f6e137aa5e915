import type { Address, Chain as ChainName, Hex, Network } from '@purser/protocol'
import type { LaneCall } from '../../chain/port.ts'
import type { RouteQuote } from '../../partners/routing/port.ts'
import type { Coin, Snapshot } from '../funds/index.ts'
import type { SourceWallet } from '../wallets/index.ts'

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
  readonly route: 'direct' | 'partner-swap' | 'partner-bridge'
  readonly routeReason: string
  /** The partner's quote; undefined for `direct`. */
  readonly quote: RouteQuote | undefined
}
