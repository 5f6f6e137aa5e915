import type { Chain, JsonObject, MppChallenge, Network, TokenInfo } from '@purser/protocol'
import type { ReceivingWallet } from '../../wallets/index.ts'
import type { VerifyRequest } from '../schema.ts'

/**
 * What an MPP credential wants to buy, once its challenge is proven to be ours, fresh, for this resource and at the
 * price, wallet and network that the verify request names. Only the payload is the payer's own word: what pays, and that it pays, is
 * still to be checked.
 */
export interface MppPurchase {
  readonly request: VerifyRequest
  readonly wallet: ReceivingWallet
  readonly token: TokenInfo
  /** In the token's smallest unit; 0n asks for a proof of the account alone. */
  readonly rawAmount: bigint
  readonly challenge: MppChallenge
  /** The name of the network as the owner of the wallet knows it. */
  readonly chain: Chain
  /** Where it is paid: the wallet's network, or for nothing the environment's Tempo network. */
  readonly network: Network
  /** The credential's `payload`, as sent. */
  readonly payload: JsonObject
  /** The credential's `source`, as sent: a `did:pkh` of the payer, or none. */
  readonly source: string | undefined
  /**
   * Only of money that was sent already: the challenge requested less than the price is now, and is not honored at that price. The money is
   * credited and buys nothing.
   */
  readonly isUnderpriced: boolean
  /** Whether the challenge promised that the service pays the fee. */
  readonly feePayer: boolean
}
