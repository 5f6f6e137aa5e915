import { type Address, decodeBool, encodeAuthorizationState, type Hex, type Network } from '@purser/protocol'
import { fail } from './errors.ts'
import { readHex, readQuantity } from './read.ts'
import { isRecord, type Rpc, type RpcAnswer } from './rpc.ts'

/** An authorization (EIP-3009) and its end, in seconds since 1970. */
export interface Lapsing {
  readonly token: Address
  readonly authorizer: Address
  readonly nonce: Hex
  readonly validBefore: bigint
}

/**
 * Whether an authorization can never be used any more: a block at the network's confirmation depth is as late as its end, and a block above
 * that one knows it as unused. All of one node and of blocks by their number, so that a node that lags cannot say that it is unused when it
 * was used since.
 */
export async function isLapsed(rpc: Rpc, network: Network, asked: Lapsing): Promise<boolean> {
  const { token, authorizer, nonce, validBefore } = asked
  const head = readQuantity(await rpc.result('eth_blockNumber', []), 'block number')
  const depth = BigInt(network.confirmationDepth) - 1n
  if (head < depth) return false
  const [block, used] = await rpc.batch([
    { method: 'eth_getBlockByNumber', params: [quantity(head - depth), false] },
    { method: 'eth_call', params: [{ to: token, data: encodeAuthorizationState(authorizer, nonce) }, quantity(head)] },
  ])
  return timeOf(block) >= validBefore && !readUsed(used)
}

function quantity(value: bigint): string {
  return `0x${value.toString(16)}`
}

function timeOf(answer: RpcAnswer | undefined): bigint {
  if (answer?.ok !== true || !isRecord(answer.result))
    throw fail('chain-unavailable', {}, new Error('the node has not the block that it counts'))
  return readQuantity(answer.result.timestamp, 'block time')
}

function readUsed(answer: RpcAnswer | undefined): boolean {
  if (answer?.ok !== true) throw fail('chain-unavailable', {}, new Error('the token does not say whether it was used'))
  try {
    return decodeBool(readHex(answer.result, 'call result'))
  } catch (error) {
    throw fail('chain-unavailable', {}, error)
  }
}
