import type { Address } from '@purser/protocol'
import type { Deps } from '../../platform/ctx.ts'
import type { HeldLeases } from '../../platform/leases/store.ts'
import type { Chain, FeeSponsor } from '../port.ts'
import type { Handlers } from './handlers.ts'
import type { LaneSigner } from './port.ts'
import type { TransactionRow } from './store.ts'

/** What a turn over the lanes of a network works with. */
export interface LaneParts {
  readonly deps: Pick<Deps, 'db' | 'clock' | 'log' | 'metrics' | 'witness'>
  readonly chain: Chain
  /** Who signs for an account whose lane this is. */
  readonly signerOf: (account: Address) => LaneSigner
  /** Pays the fees of what is planned as sponsored; a lane without one sends nothing of that kind. */
  readonly sponsor?: FeeSponsor | undefined
  readonly handlers: Handlers
  /** The leases under which the turn began. Whatever it stores names them; after their loss it can only send again what is stored. */
  readonly held: HeldLeases
  /** When this process first saw the nonce of a transaction used, without a receipt of ours: milliseconds by its id. */
  readonly usedSince: Map<string, number>
}

/** Accounts that are worked on one by one, at the same time, where it failed for all of them together. */
const aloneAtOnce = 8

/** Works on accounts together; where that fails, on each by itself, so that one blocks no other. A failure of a single account is thrown. */
export async function isolateFailures<T>(
  parts: LaneParts,
  senders: readonly Address[],
  work: (senders: readonly Address[]) => Promise<readonly T[]>,
): Promise<readonly T[]> {
  try {
    return await work(senders)
  } catch (error) {
    if (senders.length === 1) throw error
    return (await inParallel(senders, aloneAtOnce, (sender) => work([sender]).catch(logStalled(parts, sender)))).flat()
  }
}

/** Runs the work for each item, so many at once; the results are in no order. */
export async function inParallel<I, O>(
  items: readonly I[],
  atOnce: number,
  work: (item: I) => Promise<O>,
): Promise<O[]> {
  const waiting = [...items].reverse()
  const done: O[] = []
  const workers = Array.from({ length: Math.min(atOnce, waiting.length) }, async () => {
    for (let item = waiting.pop(); item !== undefined; item = waiting.pop()) done.push(await work(item))
  })
  await Promise.all(workers)
  return done
}

/** Logs that an account's lane failed; the next turn tries again. */
export function logStalled({ deps, chain }: LaneParts, sender: Address) {
  return (error: unknown): [] => {
    const facts = { err: error, network: chain.network.name, sender }
    deps.log.warn(facts, 'the lane of an account failed; it is tried again')
    return []
  }
}

/** Logs that one transaction could not be followed; the next turn tries again. */
export function logNotFollowed({ deps }: Pick<LaneParts, 'deps'>, { id }: TransactionRow, error: unknown): void {
  deps.log.error({ err: error, transactionId: id }, 'a transaction could not be followed; it is tried again')
}
