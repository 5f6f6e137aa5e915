import type { Address, Network } from '@purser/protocol'
import type { Clock } from '../../platform/clock.ts'
import { isProblem } from '../../platform/errors.ts'
import type { Log } from '../../platform/log.ts'
import { fail } from '../errors.ts'
import type { PendingNonce, QuorumReads } from './port.ts'
import type { Quorum } from './quorum.ts'
import { readQuantity, resultOf } from './read.ts'
import type { Rpc } from './rpc.ts'

export interface FirstNonceOptions {
  readonly network: Network
  readonly quorum: Quorum
  readonly clock: Clock
  readonly log?: Log | undefined
}

/** Milliseconds for which a single node must report the same count before a count other than 0 is accepted. */
const unconfirmedMsMin = 120_000

/**
 * Finds the nonce at which a lane begins. A node votes for the account's transaction count at confirmation depth, and only while it has no later
 * transaction of the account. The service's accounts sign only through lanes, so a count above 0 means that rows were lost. A wrong count of a
 * single node would never be corrected, so it must stay the same for a while.
 */
export function createFirstNonce(options: FirstNonceOptions): Pick<QuorumReads, 'firstNonce' | 'pendingNonces'> {
  const { network, quorum, clock, log } = options
  const seen = new Map<Address, { readonly count: bigint; readonly sinceMs: number }>()
  const isSettled = (account: Address, count: bigint): boolean => {
    const now = clock.now().getTime()
    const known = seen.get(account)
    if (known?.count !== count) seen.set(account, { count, sinceMs: now })
    return known?.count === count && now - known.sinceMs >= unconfirmedMsMin
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
    pendingNonces: (accounts) => pendingNoncesOf(options, accounts),
  }
}

async function pendingNoncesOf(
  { network, quorum }: FirstNonceOptions,
  accounts: readonly Address[],
): Promise<readonly PendingNonce[]> {
  const decision = await quorum.decide({ depth: network.confirmationDepth })
  const counts = await Promise.all((decision?.nodes ?? []).map((rpc) => pendingCounts(rpc, accounts)))
  const reported = counts.filter((own) => own !== undefined)
  if (reported.length < quorum.needed)
    throw fail('chain-unavailable', {}, new Error('too few nodes report pending transactions'))
  return accounts.map((_, index) =>
    pendingNonceOf(
      reported.map((own) => own[index] ?? 0n),
      quorum.needed,
    ),
  )
}

async function countOf({ network, quorum }: FirstNonceOptions, account: Address): Promise<bigint | undefined> {
  const decision = await quorum.decide({ depth: network.confirmationDepth })
  if (decision === undefined) return undefined
  const ask = async (rpc: Rpc) => {
    const blocks = [decision.at, 'pending']
    const responses = await rpc.batch(
      blocks.map((block) => ({ method: 'eth_getTransactionCount', params: [account, block] })),
    )
    const [deep, pending] = responses.map((response) => readQuantity(resultOf(response), 'transaction count'))
    return [deep === pending ? deep : undefined]
  }
  return (await decision.vote({ count: 1, ask }))[0]
}

/** One node's counts; undefined if it fails. */
async function pendingCounts(rpc: Rpc, accounts: readonly Address[]): Promise<readonly bigint[] | undefined> {
  try {
    const calls = accounts.map((account) => ({ method: 'eth_getTransactionCount', params: [account, 'pending'] }))
    return (await rpc.batch(calls)).map((response) => readQuantity(resultOf(response), 'transaction count'))
  } catch (error) {
    if (isProblem(error, 'chain-unavailable')) return undefined
    throw error
  }
}

/** Returns the count that a majority reaches, and the count that a majority does not exceed. */
function pendingNonceOf(counts: readonly bigint[], needed: number): PendingNonce {
  const sorted = counts.toSorted((left, right) => (left < right ? -1 : left > right ? 1 : 0))
  return { least: sorted.at(-needed) ?? 0n, most: sorted[needed - 1] ?? 0n }
}
