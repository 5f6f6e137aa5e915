import type { Address, Hex, Network } from '@purser/protocol'
import type { Chain, Chains, Holding } from '../../../chain/port.ts'
import { gather } from '../../../platform/db/gather.ts'
import { isProblem } from '../../../platform/errors.ts'

/** Reads what an account has of a network's native coin and of all of its tokens that the service knows. */
export type ReadHolding = (network: Network, account: Address) => Promise<Holding>

/** Accounts of one block whose balances are remembered; beyond it all are forgotten, which costs a read each. */
const rememberedMax = 10_000

/**
 * Reads the newest block, so that a balance which is read after a transfer was reported as confirmed has the transfer. Each caller's own question is which
 * block is the newest; what accounts have in it is read once for all callers, until another block takes its place.
 */
export function createHoldingReader({ chains }: { readonly chains: Pick<Chains, 'on'> }): ReadHolding {
  const readers = new Map<string, (account: Address) => Promise<Holding>>()
  return (network, account) => {
    const read = readers.get(network.name) ?? readerOf(network, chains)
    readers.set(network.name, read)
    return read(account)
  }
}

function readerOf(network: Network, chains: Pick<Chains, 'on'>): (account: Address) => Promise<Holding> {
  const headHash = gather<undefined, Hex>({ itemsMax: 1_000, roundsMax: 4 }, async (callers) => {
    const { hash } = await chains.on(network).blocks.head()
    return callers.map(() => hash)
  })
  let newest: { readonly hash: Hex; readonly read: (account: Address) => Promise<Holding> } | undefined
  return async (account) => {
    const hash = await headHash(undefined)
    if (newest?.hash !== hash) newest = { hash, read: readerAt(chains.on(network), hash) }
    return newest.read(account)
  }
}

/** What accounts have in one block never changes, so that it is remembered; what failed is not. */
function readerAt(chain: Chain, hash: Hex): (account: Address) => Promise<Holding> {
  const tokens = chain.network.tokens.map(({ address }) => address)
  const read = gather<Address, Holding>({ itemsMax: 100, roundsMax: 4 }, (accounts) =>
    chain.holdings(
      accounts.map((account) => ({ account, tokens })),
      hash,
    ),
  )
  const latest = gather<Address, Holding>({ itemsMax: 100, roundsMax: 4 }, (accounts) =>
    chain.holdings(accounts.map((account) => ({ account, tokens }))),
  )
  const remembered = new Map<Address, Promise<Holding>>()
  return (account) => {
    if (remembered.size >= rememberedMax) remembered.clear()
    const holding = remembered.get(account) ?? read(account)
    remembered.set(account, holding)
    return holding.catch((error: unknown) => {
      if (remembered.get(account) === holding) remembered.delete(account)
      // Behind one address there may be several nodes, and the one that answers now may not have the block.
      if (isProblem(error, 'chain-unavailable')) return latest(account)
      throw error
    })
  }
}
