import type { Address, Hex } from '@purser/protocol'
import type { Head } from './port.ts'
import type { Rpc, RpcAnswer, RpcCall } from './rpc/rpc.ts'

/** A transaction as it would be sent. */
export interface SentCall {
  readonly from: Address
  readonly to: Address
  readonly data: Hex
  readonly gasLimit: bigint
}

/** Words with which the several clients say that the call itself would fail, as against that they cannot answer or that the account is poor. */
const callFaults = /revert|out of gas|invalid opcode|invalid jump|gas required exceeds/i

/** Two builders and two times, in seconds after the latest block: what a stranger's code can tell a trial by. */
const circumstances = [
  { feeRecipient: '0x95222290DD7278Aa3Ddd389Cc1E1d165CC4BAfe5', after: 1n },
  { feeRecipient: '0x0000000000000000000000000000000000000000', after: 5n },
] as const
type Circumstance = (typeof circumstances)[number]

/**
 * Whether the call would succeed as the transaction that it is to be, at a real gas price and under several circumstances. `head` is the latest block. A node that cannot
 * change a block's circumstances is asked with the gas price alone, and what it cannot say is no refusal.
 */
export async function trySending(rpc: Rpc, call: SentCall, head: Head): Promise<boolean> {
  const answers = await rpc.batch(circumstances.map((circumstance) => asked(call, head, circumstance)))
  if (answers.some((answer) => answer.ok || fails(answer))) return !answers.some(fails)
  const plain = await rpc.batch([asked(call, head)])
  return !plain.some(fails)
}

function asked({ from, to, data, gasLimit }: SentCall, head: Head, circumstance?: Circumstance): RpcCall {
  const call = { from, to, data, gas: quantity(gasLimit), gasPrice: quantity(head.baseFee + 1n) }
  if (circumstance === undefined) return { method: 'eth_call', params: [call, 'latest'] }
  const { feeRecipient, after } = circumstance
  return {
    method: 'eth_call',
    params: [call, 'latest', {}, { feeRecipient, time: quantity(head.timestampSeconds + after) }],
  }
}

function fails(answer: RpcAnswer): boolean {
  return !answer.ok && (answer.data !== undefined || callFaults.test(answer.message))
}

function quantity(value: bigint): string {
  return `0x${value.toString(16)}`
}
