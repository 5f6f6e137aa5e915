import type { Address, Hex } from '@purser/protocol'
import type { Head } from '../facts.ts'
import { callFaultOf } from '../rpc/call-fault.ts'
import type { Rpc, RpcCall, RpcResponse } from '../rpc/rpc.ts'

/** A transaction to be simulated as sent. */
export interface SimulatedCall {
  readonly from: Address
  readonly to: Address
  readonly data: Hex
  readonly gasLimit: bigint
}

/** Two block builders and two times, in seconds after the latest block. Untrusted code could use them to detect a trial. */
const environments = [
  { feeRecipient: '0x95222290DD7278Aa3Ddd389Cc1E1d165CC4BAfe5', after: 1n },
  { feeRecipient: '0x0000000000000000000000000000000000000000', after: 5n },
] as const
type Environment = (typeof environments)[number]

/**
 * Whether the call would succeed as a real transaction, at a real gas price and in several block environments. `head` is the latest block. A node
 * that does not support block overrides is queried with the gas price only. A response that does not decide counts as success.
 */
export async function trySending(rpc: Rpc, call: SimulatedCall, head: Head): Promise<boolean> {
  const responses = await rpc.batch(environments.map((environment) => callIn(call, head, environment)))
  if (responses.some((response) => response.ok || fails(response))) return !responses.some(fails)
  const plain = await rpc.batch([callIn(call, head)])
  return !plain.some(fails)
}

function callIn({ from, to, data, gasLimit }: SimulatedCall, head: Head, environment?: Environment): RpcCall {
  const call = { from, to, data, gas: quantity(gasLimit), gasPrice: quantity(head.baseFee + 1n) }
  if (environment === undefined) return { method: 'eth_call', params: [call, 'latest'] }
  const { feeRecipient, after } = environment
  return {
    method: 'eth_call',
    params: [call, 'latest', {}, { feeRecipient, time: quantity(head.timestampSeconds + after) }],
  }
}

function fails(response: RpcResponse): boolean {
  return callFaultOf(response) === 'code'
}

function quantity(value: bigint): string {
  return `0x${value.toString(16)}`
}
