import type { Address, Hex, Network } from '@purser/protocol'
import type { Chain, Chains, Holding } from '../../../chain/port.ts'
import { batch } from '../../../platform/db/batch.ts'
import { isProblem } from '../../../platform/errors.ts'

/** Reads an account's native coin and all of its known tokens on a network. */
export type ReadHolding = (network: Network, account: Address) => Promise<Holding>

/** Most balances cached per block; beyond that the cache is cleared, which costs one read each. */
const rememberedMax = 10_000

/**
 * Reads balances in the newest block, so that a read after a transfer was reported as confirmed includes it. Each caller queries the newest
 * block; balances in it are read once for all callers, until the next block.
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
  const headHash = batch<undefined, Hex>({ itemsMax: 1_000, batchesMax: 4 }, async (callers) => {
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

/** Balances in one block never change, so they are cached; failures are not. */
function readerAt(chain: Chain, hash: Hex): (account: Address) => Promise<Holding> {
  const tokens = chain.network.tokens.map(({ address }) => address)
  const read = batch<Address, Holding>({ itemsMax: 100, batchesMax: 4 }, (accounts) =>
    chain.holdings(
      accounts.map((account) => ({ account, tokens })),
      hash,
    ),
  )
  const latest = batch<Address, Holding>({ itemsMax: 100, batchesMax: 4 }, (accounts) =>
    chain.holdings(accounts.map((account) => ({ account, tokens }))),
  )
  const remembered = new Map<Address, Promise<Holding>>()
  return (account) => {
    if (remembered.size >= rememberedMax) remembered.clear()
    const holding = remembered.get(account) ?? read(account)
    remembered.set(account, holding)
    return holding.catch((error: unknown) => {
      if (remembered.get(account) === holding) remembered.delete(account)
      // An RPC address may have several nodes behind it, and the one that responds may lack the block.
      if (isProblem(error, 'chain-unavailable')) return latest(account)
      throw error
    })
  }
}
