import type { Address, Network } from '@purser/protocol'
import type { Clock } from '../../platform/clock.ts'
import type { Log } from '../../platform/log.ts'
import { fail } from '../errors.ts'
import type { QuorumReads } from '../quorum-port.ts'
import type { Quorum } from './quorum.ts'
import { readQuantity } from './read.ts'
import { resultOf } from './receipts.ts'
import type { Rpc } from './rpc.ts'

export interface FirstNonceOptions {
  readonly network: Network
  readonly quorum: Quorum
  readonly clock: Clock
  readonly log?: Log | undefined
}

/** How long a single node must report the same count before a count other than 0 is accepted. */
const aloneMsMin = 120_000

/**
 * Finds the nonce at which a lane begins. A node votes for the account's transaction count at confirmation depth, and only while it has no later
 * transaction of the account. The service's accounts sign only through lanes, so a count above 0 means that rows were lost. A wrong count of a
 * single node would never be corrected, so it must stay the same for a while.
 */
export function createFirstNonce(options: FirstNonceOptions): Pick<QuorumReads, 'firstNonce' | 'highestNonces'> {
  const { network, quorum, clock, log } = options
  const seen = new Map<Address, { readonly count: bigint; readonly sinceMs: number }>()
  const isSettled = (account: Address, count: bigint): boolean => {
    const now = clock.now().getTime()
    const known = seen.get(account)
    if (known?.count !== count) seen.set(account, { count, sinceMs: now })
    return known?.count === count && now - known.sinceMs >= aloneMsMin
  }
  return {
    async firstNonce(account) {
      const count = await countOf(options, account)
      if (count === 0n) return count
      if (count !== undefined && (quorum.needed > 1 || isSettled(account, count))) {
        seen.delete(account)
        return count
      }
      const details = { network: network.name, account, count: count?.toString() }
      log?.error(
        details,
        'the first nonce of an account is not confirmed; nothing is sent from the account until it is',
      )
      throw fail('chain-unavailable', {}, new Error('the first nonce of an account is not confirmed'))
    },
    async highestNonces(accounts) {
      const decision = await quorum.decide({ depth: network.confirmationDepth })
      if (decision === undefined) throw fail('chain-unavailable', {}, new Error('nodes agree on no block'))
      const calls = accounts.map((account) => ({ method: 'eth_getTransactionCount', params: [account, 'pending'] }))
      const reported = await Promise.all(
        decision.nodes.map(async (rpc) =>
          (await rpc.batch(calls)).map((answer) => readQuantity(resultOf(answer), 'transaction count')),
        ),
      )
      return accounts.map((_, index) =>
        reported.reduce((most, counts) => ((counts[index] ?? 0n) > most ? (counts[index] ?? 0n) : most), 0n),
      )
    },
  }
}

async function countOf({ network, quorum }: FirstNonceOptions, account: Address): Promise<bigint | undefined> {
  const decision = await quorum.decide({ depth: network.confirmationDepth })
  if (decision === undefined) return undefined
  const ask = async (rpc: Rpc) => {
    const blocks = [decision.at, 'pending']
    const answers = await rpc.batch(
      blocks.map((block) => ({ method: 'eth_getTransactionCount', params: [account, block] })),
    )
    const [deep, pending] = answers.map((answer) => readQuantity(resultOf(answer), 'transaction count'))
    return [deep === pending ? deep : undefined]
  }
  return (await decision.vote({ count: 1, ask }))[0]
}
