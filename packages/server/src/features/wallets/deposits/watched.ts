import type { Hex } from '@purser/protocol'
import type { Environment } from '../../../platform/ctx.ts'
import type { Deps } from '../ports.ts'
import { AddressSet } from './address-set.ts'
import { countWatches, packAddresses, packAddressesSince, readHorizon, type WatchKey } from './watch-store.ts'

const pageMost = 50_000

/**
 * The watched addresses of one environment in memory, for all of its networks. It only selects logs to process: the transaction that stores
 * them reads from the database whose address it is, and whether it is still watched.
 */
export interface Watched {
  /** Loads every address that was committed before the call. */
  refresh(): Promise<void>
  hasTopic(topic: string): boolean
  /** All addresses as topics of logs. */
  topics(): Iterable<Hex>
  readonly size: number
}

/** Reads nothing before the first `refresh`, which reads all addresses; later ones read the new addresses. */
export function createWatched(deps: Pick<Deps, 'db' | 'random'>, environment: Environment): Watched {
  const seed = Buffer.from(deps.random.bytes(4)).readUInt32BE()
  let set = new AddressSet(seed)
  let horizon: bigint | undefined
  let turn: Promise<void> = Promise.resolve()

  const readAll = async (): Promise<void> => {
    const from = await readHorizon(deps.db)
    // Allocated at full size: growing leaves the smaller arrays to the garbage collector.
    set = new AddressSet(seed, await countWatches(deps.db, environment))
    for await (const packed of pagesOfAddresses(deps.db, environment)) set.addAll(packed)
    horizon = from
  }
  const readNew = async (from: bigint): Promise<void> => {
    const fresh = await packAddressesSince(deps.db, environment, from)
    set.addAll(fresh.packed)
    horizon = fresh.horizon
  }
  return {
    refresh() {
      // One at a time, each started after its request: one that is already running may have missed a commit.
      const mine = turn.then(() => (horizon === undefined ? readAll() : readNew(horizon)))
      turn = mine.catch(() => undefined)
      return mine
    },
    hasTopic: (topic) => set.hasTopic(topic),
    topics: () => set.topics(),
    get size() {
      return set.size
    },
  }
}

async function* pagesOfAddresses(db: Deps['db'], environment: Environment): AsyncGenerator<Page['packed']> {
  let after: WatchKey | undefined = { walletId: '', network: '' }
  while (after !== undefined) {
    const page: Page = await packAddresses(db, environment, { after, limit: pageMost })
    yield page.packed
    after = page.next
  }
}

type Page = Awaited<ReturnType<typeof packAddresses>>
