import { decodeUint256, encodeGetNonce, tempoNonceManager, uint256Max } from '@purser/protocol'
import { fail } from './errors.ts'
import type { TempoTransaction } from './port.ts'
import { readHex, readQuantity } from './rpc/read.ts'
import type { Rpc, RpcCall } from './rpc/rpc.ts'

/**
 * Whether there is a nonce gap before this transaction, so that no block can include it until its sender signs another one. A node accepts and
 * keeps such a transaction, but it may never be mined. An expiring nonce (TIP-1009) is zero and leaves no gap. Throws `chain-unavailable`. Source:
 * Tempo Transaction specification, "Nonces". The pending nonce is read too, since payments of one sender may follow each other.
 */
export async function leavesGap(rpc: Rpc, { sender, nonceKey, nonce }: TempoTransaction): Promise<boolean> {
  if (nonce === 0n) return false
  if (nonceKey === uint256Max) return true
  const calls = nonceKey === 0n ? accountNonceCalls(sender) : [keyedNonceCall(sender, nonceKey)]
  const answers = await rpc.batch(calls)
  return answers.every((answer) => {
    const result = answer.ok ? answer.result : undefined
    return nonce > (nonceKey === 0n ? readQuantity(result, 'nonce') : wordOf(readHex(result, 'nonce')))
  })
}

function accountNonceCalls(sender: string): RpcCall[] {
  return ['latest', 'pending'].map((block) => ({ method: 'eth_getTransactionCount', params: [sender, block] }))
}

function keyedNonceCall(sender: TempoTransaction['sender'], nonceKey: bigint): RpcCall {
  return { method: 'eth_call', params: [{ to: tempoNonceManager, data: encodeGetNonce(sender, nonceKey) }, 'latest'] }
}

function wordOf(result: `0x${string}`): bigint {
  try {
    return decodeUint256(result)
  } catch (error) {
    throw fail('chain-unavailable', {}, error)
  }
}
