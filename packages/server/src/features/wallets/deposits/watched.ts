import type { Deps, Environment } from '../../../platform/ctx.ts'
import { AddressSet } from './address-set.ts'
import { countWatches, packAddresses, packAddressesSince, readHorizon, type WatchKey } from './watch-store.ts'

const pageMost = 50_000

/**
 * The watched addresses of one environment in memory, for all of its networks. It only says which logs are worth a look: whose address it is, and
 * whether it is still watched, the database is asked for in the transaction that stores what was found.
 */
export interface Watched {
  /** Takes in every address that was committed before the call. */
  refresh(): Promise<void>
  hasTopic(topic: string): boolean
  readonly size: number
}

/** Nothing is read before the first `refresh`, which reads all; the following ones read what was written since. */
export function createWatched(deps: Pick<Deps, 'db' | 'random'>, environment: Environment): Watched {
  const seed = Buffer.from(deps.random.bytes(4)).readUInt32BE()
  let set = new AddressSet(seed)
  let horizon: bigint | undefined
  let turn: Promise<void> = Promise.resolve()

  const readAll = async (): Promise<void> => {
    const from = await readHorizon(deps.db)
    // Made as large as it will be: one that grows leaves its smaller selves behind.
    set = new AddressSet(seed, await countWatches(deps.db, environment))
    let after: WatchKey | undefined = { walletId: '', network: '' }
    while (after !== undefined) {
      const page: Awaited<ReturnType<typeof packAddresses>> = await packAddresses(deps.db, environment, {
        after,
        limit: pageMost,
      })
      set.addAll(page.packed)
      after = page.next
    }
    horizon = from
  }
  const readNew = async (from: bigint): Promise<void> => {
    const fresh = await packAddressesSince(deps.db, environment, from)
    set.addAll(fresh.packed)
    horizon = fresh.horizon
  }
  return {
    refresh() {
      // One at a time, each begun after it was asked for: one that is under way may have missed a commit.
      const mine = turn.then(() => (horizon === undefined ? readAll() : readNew(horizon)))
      turn = mine.catch(() => undefined)
      return mine
    },
    hasTopic: (topic) => set.hasTopic(topic),
    get size() {
      return set.size
    },
  }
}
