import type { Address, Network } from '@purser/protocol'
import type { Deps } from '../platform/ctx.ts'
import { fail } from './errors.ts'
import type { Chains } from './port.ts'

const doubtedMsMin = 120_000

/**
 * The nonce that an account's lane begins with. The keys are the service's own and sign through lanes alone, so it is 0 unless the rows were
 * lost. What a node says beyond is believed when it has said the same for two minutes and every node has it at the network's depth;
 * until then `chain-unavailable`: a lane that begins where the chain never comes sends nothing for ever.
 */
export function createFirstNonce(deps: Pick<Deps, 'clock' | 'log'>, chains: Pick<Chains, 'on'>) {
  const doubted = new Map<string, { readonly count: bigint; readonly sinceMs: number }>()
  return async (network: Network, account: Address): Promise<bigint> => {
    const chain = chains.on(network)
    const count = await chain.transactionCount(account, 'pending')
    if (count === 0n) return count
    const name = `${network.name} ${account}`
    const now = deps.clock.now().getTime()
    const known = doubted.get(name)
    if (known?.count !== count) doubted.set(name, { count, sinceMs: now })
    const isOld = known?.count === count && now - known.sinceMs >= doubtedMsMin
    if (isOld && (await chain.isNonceLost(account, count - 1n, []))) return count
    const facts = { network: network.name, account, count: count.toString() }
    deps.log.error(
      facts,
      'a node says that an account has sent what is not known here; nothing is sent until that is sure',
    )
    throw fail('chain-unavailable', {}, new Error('an account that others have sent from'))
  }
}
