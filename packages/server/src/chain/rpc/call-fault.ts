import type { Hex } from '@purser/protocol'
import { readHex, resultOf } from './read.ts'
import type { RpcResponse } from './rpc.ts'

/** Error messages of the different clients when the code of the call fails. A node that stops slow code (`execution aborted`, `execution timeout`) has no result. */
const codeFaults =
  /revert|out of gas|evm error|intrinsic gas|invalid opcode|invalid jump|gas required exceeds|execution(?! aborted| timeout)/i

/** Error messages of the different clients when the account has too little coin for the call's value and gas price. */
const coinFaults = /insufficient|exceeds balance/i

/** Returns why the call itself would fail; undefined for a result, and for an error of a node that is unable to answer. */
export function callFaultOf(response: RpcResponse): 'code' | 'coin' | undefined {
  if (response.ok) return undefined
  if (response.data !== undefined || codeFaults.test(response.message)) return 'code'
  return coinFaults.test(response.message) ? 'coin' : undefined
}

/** The data that a call returns; undefined if the call itself fails. Throws `chain-unavailable` for an error of the node. */
export function returnedBy(response: RpcResponse | undefined): Hex | undefined {
  const isFault = response !== undefined && callFaultOf(response) !== undefined
  return isFault ? undefined : readHex(resultOf(response), 'call result')
}
