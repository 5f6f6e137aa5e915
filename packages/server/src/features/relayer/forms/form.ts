import type { Address, Call3, Hex } from '@purser/protocol'
import type { Chain, Log, NonceState } from '../../../chain/port.ts'
import type { Finality } from '../../../chain/quorum-port.ts'
import type { RelayFault } from '../port.ts'

/** `taken`: the latest block would accept it. `used`: its nonce is spent. Otherwise why the chain refuses it. */
export type Trial = 'taken' | 'used' | RelayFault

/** How a spent nonce was used. `lost`: without this money moving. `undecided`: read the chain again later. */
export type Use =
  | {
      readonly outcome: 'settled'
      readonly transactionHash: Hex
      readonly blockHash: Hex | undefined
      /**
       * Indexes of logs in the transaction's receipt, each of which proves one payment. They prove this payment if one
       * of them is not taken by another.
       */
      readonly places?: readonly number[] | undefined
    }
  | { readonly outcome: 'lost'; readonly fault: RelayFault }
  | { readonly outcome: 'undecided' }

/** One kind of signed payload: how it is sent, how its execution is proven, and how the chain is queried about it. */
export interface Form<Payload> {
  /** Most gas that it costs the operator, without the base cost of its transaction. */
  gas(payload: Payload): bigint
  calls(payload: Payload): readonly Call3[]
  /** Whether these logs of one transaction show that its money moved. */
  proof(logs: readonly Log[]): (payload: Payload) => boolean
  expired(payload: Payload): RelayFault
  used(payload: Payload): RelayFault
  notCarried(payload: Payload): RelayFault
  /** The quorum's report of each nonce, at the payment depth if no finality is given; at most 500 at once. */
  states(chain: Chain, payloads: readonly Payload[], finality?: Finality): Promise<readonly NonceState[]>
  find(chain: Chain, payload: Payload, since: Date): Promise<Use>
  /** Whether the latest block would accept it if the settler sent it now. */
  judge(chain: Chain, payload: Payload, settler: Address): Promise<Trial>
}
