import type { Address, Network } from '@purser/protocol'
import type { Chains, Holding, HoldingQuestion } from '../../../chain/port.ts'
import { gather } from '../../../platform/db/gather.ts'

/** Reads what an account has of a network's native coin and of all of its tokens that the service knows. */
export type ReadHolding = (network: Network, account: Address) => Promise<Holding>

/**
 * Reads the newest block, so that a balance which is read after a transfer was reported as confirmed has the transfer. Nothing is remembered; callers at
 * the same time share one call to the node, which begins after all of them called.
 */
export function createHoldingReader({ chains }: { readonly chains: Pick<Chains, 'on'> }): ReadHolding {
  const readers = new Map<string, (question: HoldingQuestion) => Promise<Holding>>()
  return (network, account) => {
    const read =
      readers.get(network.name) ??
      gather<HoldingQuestion, Holding>({ itemsMax: 100, roundsMax: 4 }, (questions) =>
        chains.on(network).holdings(questions),
      )
    readers.set(network.name, read)
    return read({ account, tokens: network.tokens.map((token) => token.address) })
  }
}
