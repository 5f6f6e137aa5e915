import { bytesToHex, type Hex, keccak256, type Network, sameAddress, topics, utf8 } from '@purser/protocol'
import type { Clock } from '../../platform/clock.ts'
import type { Log, Receipt } from '../port.ts'
import { createLogReader, type LogRange, type LogReader, searchRange } from './logs.ts'
import type { AuthorizationId, AuthorizationUse, QuorumReads } from './port.ts'
import type { Quorum } from './quorum.ts'
import { accountTopic, readHex, readReceipt } from './read.ts'
import type { Rpc, Wait } from './rpc.ts'
import { searchNodes } from './search-nodes.ts'

type Id = Omit<AuthorizationId, 'validBefore'>

interface Search {
  readonly network: Network
  readonly clock: Clock
  readonly quorum: Pick<Quorum, 'needed' | 'decide'>
  readonly wait: Wait | undefined
  readonly reads: Pick<QuorumReads, 'confirmReceipts' | 'authorizationStates'>
}

const canceledTopic = bytesToHex(keccak256(utf8('AuthorizationCanceled(address,bytes32)')))

/**
 * Finds the transaction that used or canceled an authorization. Any node may report the transaction, since a majority must confirm its receipt.
 * When no node reports one, the outcome is `undecided`.
 */
export function createAuthorizationUse(search: Search): Pick<QuorumReads, 'findAuthorizationUse'> {
  const logs = createLogReader()
  return {
    async findAuthorizationUse(id, within) {
      const [state] = await search.reads.authorizationStates([{ ...id, validBefore: neverPast }])
      if (state !== 'used') return { outcome: state === 'open' ? 'open' : 'undecided' }
      const decision = await search.quorum.decide({ depth: search.network.confirmationDepth })
      if (decision === undefined) return { outcome: 'undecided' }
      const range = searchRange(search, { to: decision.block.number, ...within })
      const use = await searchNodes(decision.nodes, {
        needed: search.quorum.needed,
        wait: search.wait,
        async search(rpc, stopped) {
          const receipt = await findReceipt(rpc, logs, id, { ...range, stopped })
          return receipt === undefined ? undefined : confirmed(search, receipt, id)
        },
      })
      return use ?? { outcome: 'undecided' }
    },
  }
}

const neverPast = 2n ** 256n

async function findReceipt(rpc: Rpc, logs: LogReader, id: Id, range: LogRange): Promise<Receipt | undefined> {
  const filter = {
    address: id.token,
    topics: [[topics.authorizationUsed, canceledTopic], accountTopic(id.authorizer), id.nonce],
  }
  for await (const [log] of logs.newestFirst(rpc, filter, range)) {
    if (log === undefined) continue
    const hash = readHex(log.transactionHash, 'log')
    return readReceipt(await rpc.result('eth_getTransactionReceipt', [hash]), hash)
  }
  return undefined
}

async function confirmed({ reads }: Search, receipt: Receipt, id: Id): Promise<AuthorizationUse | undefined> {
  const outcome = outcomeIn(receipt, id)
  if (outcome === undefined) return undefined
  const [verdict] = await reads.confirmReceipts([receipt])
  return verdict === 'yes' ? { outcome, receipt } : undefined
}

function outcomeIn({ logs }: Receipt, id: Id): 'used' | 'canceled' | undefined {
  if (logs.some((log) => isOf(log, id, topics.authorizationUsed))) return 'used'
  return logs.some((log) => isOf(log, id, canceledTopic)) ? 'canceled' : undefined
}

function isOf({ address, topics: [event, authorizer, nonce] }: Log, id: Id, topic: Hex): boolean {
  if (!sameAddress(address, id.token) || event !== topic) return false
  return authorizer?.toLowerCase() === accountTopic(id.authorizer) && nonce?.toLowerCase() === id.nonce.toLowerCase()
}
