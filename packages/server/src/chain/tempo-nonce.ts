import { decodeUint256, encodeGetNonce, tempoNonceManager, uint256Max } from '@purser/protocol'
import { fail } from './errors.ts'
import type { TempoTransaction } from './port.ts'
import { readHex, readQuantity } from './rpc/read.ts'
import type { Rpc, RpcCall } from './rpc/rpc.ts'

/**
 * Whether no nonce has led up to this transaction's, so that no block can take it before its sender signs something else: a node takes such
 * a transaction and keeps it, and it may never come. An expiring nonce (TIP-1009) is zero and waits for nothing. Throws `chain-unavailable`.
 * Source: Tempo Transaction specification, "Nonces"; the pool's own view is asked for too, since payments of one sender may follow each other.
 */
export async function leavesGap(rpc: Rpc, { sender, nonceKey, nonce }: TempoTransaction): Promise<boolean> {
  if (nonce === 0n) return false
  if (nonceKey === uint256Max) return true
  const calls = nonceKey === 0n ? ownNonces(sender) : [keyedNonce(sender, nonceKey)]
  const answers = await rpc.batch(calls)
  return answers.every((answer) => {
    const result = answer.ok ? answer.result : undefined
    return nonce > (nonceKey === 0n ? readQuantity(result, 'nonce') : wordOf(readHex(result, 'nonce')))
  })
}

function ownNonces(sender: string): RpcCall[] {
  return ['latest', 'pending'].map((block) => ({ method: 'eth_getTransactionCount', params: [sender, block] }))
}

function keyedNonce(sender: TempoTransaction['sender'], nonceKey: bigint): RpcCall {
  return { method: 'eth_call', params: [{ to: tempoNonceManager, data: encodeGetNonce(sender, nonceKey) }, 'latest'] }
}

function wordOf(result: `0x${string}`): bigint {
  try {
    return decodeUint256(result)
  } catch (error) {
    throw fail('chain-unavailable', {}, error)
  }
}
