import {
  type Address,
  bytesToHex,
  type Hex,
  keccak256,
  type Network,
  sameAddress,
  topics,
  utf8,
} from '@purser/protocol'
import type { Clock } from '../platform/clock.ts'
import { fail } from './errors.ts'
import type { AuthorizationUse, Chain, Log, Receipt } from './port.ts'
import { readHex, readQuantity, readReceipt } from './read.ts'
import { isRecord, type Rpc } from './rpc.ts'

interface Used {
  readonly token: Address
  readonly authorizer: Address
  readonly nonce: Hex
  readonly since: Date
}

const blocksPerQueryMax = 5_000n
const marginBlocks = 5_000n

/**
 * How an authorisation came to be used up: by its use or by its cancelling (EIP-3009), as a receipt at the confirmation depth says that
 * every healthy node has. What one node alone says, or shows no log for, is open: it is asked again.
 */
export function createAuthorizationUse(
  { network, rpc, clock }: { readonly network: Network; readonly rpc: Rpc; readonly clock: Clock },
  believe: Chain['believe'],
): Pick<Chain, 'findAuthorizationUsed'> {
  return {
    async findAuthorizationUsed(token, authorizer, nonce, { since }) {
      const used = { token, authorizer, nonce, since }
      const receipt = await rpc.onOneNode((one) => findReceipt(network, one, clock, used))
      if (receipt === undefined || (await believe([receipt]))[0] !== true) return { outcome: 'open' }
      return useIn(receipt, used)
    },
  }
}

function useIn({ transactionHash, blockNumber, logs }: Receipt, used: Used): AuthorizationUse {
  if (logs.some((log) => isOf(log, used, topics.authorizationUsed)))
    return { outcome: 'used', transactionHash, blockNumber, logs }
  return { outcome: logs.some((log) => isOf(log, used, cancelledTopic)) ? 'cancelled' : 'open' }
}

function isOf({ address, topics: [event, authorizer, nonce] }: Log, used: Used, topic: Hex): boolean {
  if (!sameAddress(address, used.token) || event !== topic) return false
  return authorizer?.toLowerCase() === topicOf(used.authorizer) && nonce?.toLowerCase() === used.nonce.toLowerCase()
}

function topicOf(account: Address): Hex {
  return `0x${account.slice(2).toLowerCase().padStart(64, '0')}`
}

/** Looks for the log of its use, or of its cancelling, from now back to before the payment was there. */
async function findReceipt(network: Network, rpc: Rpc, clock: Clock, used: Used): Promise<Receipt | undefined> {
  const head = readQuantity(await rpc.result('eth_blockNumber', []), 'block number')
  const ageMs = Math.max(0, clock.now().getTime() - used.since.getTime())
  const age = BigInt(Math.ceil(ageMs / network.blockTimeMs)) * 2n + marginBlocks
  const first = head > age ? head - age : 0n
  for (let to = head; to >= first; to -= blocksPerQueryMax) {
    const from = to - blocksPerQueryMax + 1n > first ? to - blocksPerQueryMax + 1n : first
    const hash = await useBetween(rpc, used, from, to)
    if (hash === undefined) continue
    const receipt = readReceipt(await rpc.result('eth_getTransactionReceipt', [hash]), hash)
    if (receipt === undefined || head - receipt.blockNumber + 1n < BigInt(network.confirmationDepth)) return undefined
    return receipt
  }
  return undefined
}

const cancelledTopic = bytesToHex(keccak256(utf8('AuthorizationCanceled(address,bytes32)')))

async function useBetween(rpc: Rpc, used: Used, from: bigint, to: bigint): Promise<Hex | undefined> {
  const logs = await rpc.result('eth_getLogs', [
    {
      address: used.token,
      fromBlock: `0x${from.toString(16)}`,
      toBlock: `0x${to.toString(16)}`,
      topics: [[topics.authorizationUsed, cancelledTopic], topicOf(used.authorizer), used.nonce],
    },
  ])
  if (!Array.isArray(logs)) throw fail('chain-unavailable', {}, new Error('the node gave no list of logs'))
  const log: unknown = logs[0]
  return isRecord(log) ? readHex(log.transactionHash, 'log') : undefined
}
