import type { Org, World } from '../../server/test/world.ts'
import type { DevChain } from '../src/chains.ts'
import { isRecord, rpc } from '../src/rpc.ts'

/** Up to a hundred payments to a wallet, as the payment log has them. */
export async function logsOf(world: World, org: Org, walletId: string): Promise<readonly Record<string, unknown>[]> {
  return (await world.call(org.testKey, 'GET', `/payments/logs?limit=100&walletId=${walletId}`)).list
}

const transferTopic = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef'

/** USDC's transfers in a transaction, each as `transferOf` writes it; throws when the transaction is in no block or reverted. */
export async function transfersIn(chain: DevChain, hash: unknown): Promise<string[]> {
  const receipt = await rpc(chain.rpcUrl, 'eth_getTransactionReceipt', [hash])
  if (!isRecord(receipt) || receipt.status !== '0x1') throw new Error(`${String(hash)} did not succeed`)
  const logs = Array.isArray(receipt.logs) ? receipt.logs.filter(isRecord) : []
  const token = chain.tokens.USDC?.toLowerCase()
  return logs.flatMap(({ address, topics, data }) => {
    const isTransfer = address === token && Array.isArray(topics) && topics[0] === transferTopic
    return isTransfer ? [`${topics[1]} ${topics[2]} ${BigInt(String(data))}`] : []
  })
}

/** A transfer in the form of `transfersIn`; the amount is in the token's smallest unit. */
export function transferOf(from: string, to: string, rawAmount: bigint): string {
  return `${topic(from)} ${topic(to)} ${rawAmount}`
}

function topic(address: string): string {
  return `0x${address.slice(2).toLowerCase().padStart(64, '0')}`
}
