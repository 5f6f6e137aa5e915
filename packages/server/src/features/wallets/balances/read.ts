import type { Address, Network } from '@purser/protocol'
import type { Chains, Holding, HoldingQuestion } from '../../../chain/port.ts'
import type { Clock } from '../../../platform/clock.ts'
import { gather } from '../../../platform/db/gather.ts'

/** Reads what an account holds of a network's native coin and of all of its tokens that the service knows. */
export type ReadHolding = (network: Network, account: Address) => Promise<Holding>

/** Accounts of one network whose balances are remembered; beyond it all are forgotten, which costs a read each. */
const rememberedMax = 10_000

interface Remembered {
  readonly holding: Promise<Holding>
  readonly untilMs: number
}

/**
 * Remembers what was read for one block time, and shares a read that is under way: however many callers ask for an account,
 * its network is asked once a block. Reads of several accounts at once share one call. What failed is not remembered.
 */
export function createHoldingReader({
  chains,
  clock,
}: {
  readonly chains: Pick<Chains, 'on'>
  readonly clock: Clock
}): ReadHolding {
  const readers = new Map<string, (account: Address) => Promise<Holding>>()
  return (network, account) => {
    const known = readers.get(network.name) ?? readerOf(network, { chains, clock })
    readers.set(network.name, known)
    return known(account)
  }
}

function readerOf(network: Network, { chains, clock }: { readonly chains: Pick<Chains, 'on'>; readonly clock: Clock }) {
  const tokens = network.tokens.map((token) => token.address)
  const read = gather<HoldingQuestion, Holding>({ itemsMax: 100, roundsMax: 4 }, (questions) =>
    chains.on(network).holdings(questions),
  )
  const remembered = new Map<Address, Remembered>()
  return (account: Address): Promise<Holding> => {
    const nowMs = clock.now().getTime()
    const known = remembered.get(account)
    if (known !== undefined && nowMs < known.untilMs) return known.holding
    if (remembered.size >= rememberedMax) remembered.clear()
    const holding = read({ account, tokens })
    const entry = { holding, untilMs: nowMs + network.blockTimeMs }
    remembered.set(account, entry)
    holding.catch(() => {
      if (remembered.get(account) === entry) remembered.delete(account)
    })
    return holding
  }
}
