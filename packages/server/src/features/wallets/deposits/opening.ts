import { type Address, checksumAddress, type Network } from '@purser/protocol'
import { fail } from '../../../chain/errors.ts'
import type { QuorumReads, StateQuestion } from '../../../chain/rpc/port.ts'
import type { Deps as PlatformDeps } from '../../../platform/ctx.ts'
import { moveCursor, type WatcherLease } from './cursor-store.ts'
import {
  findFollowedTokens,
  listManagedWallets,
  type ManagedWallet,
  setFollowedTokens,
  upsertOpenings,
} from './opening-store.ts'
import { LeadLost, requireCursor } from './store-scan.ts'

export type BalanceReads = Pick<QuorumReads, 'stateAt'>

export interface Opening {
  readonly deps: Pick<PlatformDeps, 'db' | 'log'>
  readonly network: Network
  readonly balances: BalanceReads
  readonly lease: WatcherLease
  readonly stopped: AbortSignal
}

/** Most balances in one read. */
const balancesMost = 1_000

/**
 * Records the balances of managed wallets in tokens whose transfers on the network were not booked so far; they are on hold, because their senders
 * were not screened: on a network that is followed for the first time, and of a token that the registry did not have before. A network that was never
 * read begins after the block `start`, in the transaction that ends the recording: after a crash neither is there, or both. Idempotent: each balance
 * is of its own block, and what is booked up to that block is subtracted when it is read. A token that no node has is left for the next time.
 */
export async function recordOpenings(opening: Opening, start: bigint): Promise<void> {
  const { deps, network, lease } = opening
  const tokens = network.tokens.map(({ address }) => address)
  const known = await findFollowedTokens(deps.db, network.name)
  const fresh = tokens.filter((token) => known?.includes(token) === false)
  if (known !== null && fresh.length === 0) return
  const { followed, block } = known === null ? { followed: tokens, block: undefined } : await readAll(opening, fresh)
  await deps.db.tx(async (tx) => {
    const { scanned } = await requireCursor(tx, lease)
    if (scanned === null) await moveCursor(tx, network.name, { scanned: start, checked: start })
    await setFollowedTokens(tx, network.name, { tokens: [...(known ?? []), ...followed], recheckFrom: block })
  })
}

interface Read {
  readonly followed: readonly Address[]
  /** The lowest block of the balances; undefined if there was no wallet. */
  readonly block: bigint | undefined
}

async function readAll(opening: Opening, tokens: readonly Address[]): Promise<Read> {
  const { deps, network, stopped } = opening
  const [answering, silent] = [new Set<Address>(), new Set<Address>()]
  const most = Math.max(1, Math.floor(balancesMost / tokens.length))
  let block: bigint | undefined
  let after = ''
  for (;;) {
    if (stopped.aborted) throw new LeadLost()
    const wallets = await listManagedWallets(deps.db, network.isTestnet ? 'test' : 'live', { after, most })
    after = wallets.at(-1)?.walletId ?? after
    if (wallets.length === 0) break
    const page = await readPage(opening, tokens, wallets)
    block = block === undefined || page.block < block ? page.block : block
    for (const { token, rawAmount } of page.balances) (rawAmount === undefined ? silent : answering).add(token)
  }
  if (tokens.some((token) => silent.has(token) && answering.has(token)))
    throw fail('chain-unavailable', {}, new Error('too few nodes agree on the balances of wallets'))
  return { followed: tokens.filter((token) => !silent.has(token)), block }
}

async function readPage(
  { deps, network, balances: reads }: Opening,
  tokens: readonly Address[],
  wallets: readonly ManagedWallet[],
) {
  const places = wallets.flatMap((wallet) => tokens.map((token) => ({ wallet, token })))
  const { block, values } = await reads.stateAt(
    places.map(({ wallet, token }): StateQuestion => ({ account: checksumAddress(wallet.address), asset: token })),
  )
  const balances = places.map((place, index) => ({ ...place, rawAmount: values[index] }))
  const openings = balances.flatMap(({ wallet, token, rawAmount = 0n }) =>
    rawAmount === 0n ? [] : [{ wallet, token, rawAmount }],
  )
  await upsertOpenings(deps.db, network.name, block.number, openings)
  if (openings.length > 0)
    deps.log.warn(
      { network: network.name, wallets: openings.length },
      'wallets hold money that is not booked; it is on hold until a rescan',
    )
  return { block: block.number, balances }
}
