import type { Address, Call3, Hex } from '@purser/protocol'
import { bytesOf } from '../../../chain/fees/costs.ts'
import type { Chain, Log, NonceState } from '../../../chain/port.ts'
import type { Finality, UseSearch } from '../../../chain/rpc/port.ts'
import type { RelayFault, SettlingBlock } from '../port.ts'

/** `taken`: the latest block would accept it. `used`: its nonce is spent. Otherwise why the chain refuses it. */
export type Trial = 'taken' | 'used' | RelayFault

/** The use of a spent nonce. `lost`: without this money moving. `undecided`: read the chain again later. */
export type Use =
  | {
      readonly outcome: 'settled'
      readonly transactionHash: Hex
      readonly block: SettlingBlock | undefined
      /**
       * Indexes of logs in the transaction's receipt, each of which proves one payment. They prove this payment if one
       * of them is not taken by another.
       */
      readonly logIndexes?: readonly number[] | undefined
    }
  | {
      readonly outcome: 'lost'
      readonly fault: RelayFault
      /** Whether a log shows the other use or the cancellation. False proves nothing: a node that has pruned its logs returns none. */
      readonly isLogged: boolean
    }
  | { readonly outcome: 'undecided' }

export interface UseOptions extends UseSearch {
  /**
   * A transaction whose confirmed receipt shows a permit's transfer (`movedIn`). It may have been made for another permit, so it is read before the
   * logs are searched.
   */
  readonly carrier?: Hex | undefined
}

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
  find(chain: Chain, payload: Payload, search: UseOptions): Promise<Use>
  /** Whether the latest block would accept it if the settler sent it now. */
  judge(chain: Chain, payload: Payload, settler: Address): Promise<Trial>
}

export interface BoundedCall {
  readonly target: Address
  readonly callData: Hex
  /** Most gas that the call may use; below 2^24. */
  readonly gas: bigint
}

const wordBytes = 32
/** Longest call data. The used gas is kept in memory behind it. */
const callDataBytesMax = 1_024

/**
 * Creation code that makes the calls appended to it, each with its own gas, and logs the gas that each used. A call that fails does
 * not affect the others, and its return data is not copied. Stack comments list the top last.
 */
const program = [
  '610400610058', // used = 0x400, place = 0x58: the calls begin behind this program
  '5b', // loop, at 6
  '38811015604c57', // jump to the end (0x4c) unless place < codesize
  '602081600039', // codecopy(0, place, 32)
  '60005190601901', // used, word, data = place + 25
  '8160381c61ffff16', // used, word, data, length
  '8082600039', // codecopy(0, data, length)
  '5a', // used, word, data, length, gas before
  '6000600083600060008860481c8960e81cf150', // call(gas, target, 0, 0, length, 0, 0)
  '5a9003', // used, word, data, length, gas of the call
  '8452', // mstore(used, gas of the call)
  '019050', // used, next place
  '9060200190', // next used, next place
  '600656', // jump to the loop
  '5b506104009003610400a000', // log0(0x400, used - 0x400), stop
].join('')

/** Returns the creation code of a transaction that makes these calls. Throws if a call does not fit. */
export function encodeBoundedCalls(calls: readonly BoundedCall[]): Hex {
  return `0x${program}${calls.map(encodeCall).join('')}`
}

/** Gas (3 bytes), target (20) and the length of the call data (2) precede each call's data. */
function encodeCall({ target, callData, gas }: BoundedCall): string {
  const bytes = bytesOf(callData)
  if (bytes > callDataBytesMax || gas >= 2n ** 24n) throw new Error('a call is too long or may use too much gas')
  return gas.toString(16).padStart(6, '0') + target.slice(2) + bytes.toString(16).padStart(4, '0') + callData.slice(2)
}

/**
 * Returns the gas that each of the calls used, by the logs of their transaction; undefined if no such log is among them. Only the
 * creation code itself logs without topics after all calls.
 */
export function usedGasIn(logs: readonly Log[], count: number): readonly bigint[] | undefined {
  const digits = wordBytes * 2
  const log = logs.findLast(({ topics, data }) => topics.length === 0 && data.length === 2 + count * digits)
  if (log === undefined) return undefined
  return Array.from({ length: count }, (_, index) =>
    BigInt(`0x${log.data.slice(2 + index * digits, 2 + (index + 1) * digits)}`),
  )
}
