import type { Chain, JsonObject, MppChallenge, Network, TokenInfo } from '@purser/protocol'
import type { ReceivingWallet } from '../../wallets/index.ts'
import type { VerifyRequest } from '../schema.ts'

/**
 * The purchase that an MPP credential requests, once its challenge is proven genuine and unexpired, for this resource and at the
 * price, wallet and network of the verify request. The payload is not verified yet: the method checks that it pays.
 */
export interface MppPurchase {
  readonly request: VerifyRequest
  readonly wallet: ReceivingWallet
  readonly token: TokenInfo
  /** In the token's smallest unit; 0n requires only a proof of the account. */
  readonly rawAmount: bigint
  readonly challenge: MppChallenge
  /** The network's name as the wallet's owner knows it. */
  readonly chain: Chain
  /** Where it is paid: the wallet's network, or for a price of zero the environment's Tempo network. */
  readonly network: Network
  /** The credential's `payload`, as sent. */
  readonly payload: JsonObject
  /** The credential's `source`, as sent: a `did:pkh` of the payer, or none. */
  readonly source: string | undefined
  /**
   * Only for money that was already sent: the challenge requested less than the price is now, and its price is not honored. The
   * money is credited and buys nothing.
   */
  readonly isUnderpriced: boolean
  /** Whether the challenge promised that the service pays the fee. */
  readonly feePayer: boolean
}
