import type { Address } from '@purser/protocol'
import type { Deps } from '../../platform/ctx.ts'
import { inParallel } from '../../platform/in-parallel.ts'
import type { LeaseSet } from '../../platform/leases/store.ts'
import type { Chain, FeeSponsor } from '../port.ts'
import type { Handlers } from './handlers.ts'
import type { LaneSigner } from './port.ts'
import type { TransactionRow } from './store.ts'

/** Dependencies of one turn over the lanes of a network. */
export interface LaneParts {
  readonly deps: Pick<Deps, 'db' | 'clock' | 'log' | 'metrics' | 'witness'>
  readonly chain: Chain
  /** The signer of a resumed account. */
  readonly signerOf: (account: Address) => LaneSigner
  /** Pays the fees of sponsored transactions. Without a sponsor, those are not sent. */
  readonly sponsor?: FeeSponsor | undefined
  readonly handlers: Handlers
  /** The leases under which the turn began. Every write checks them; after losing them the turn can only rebroadcast stored bytes. */
  readonly leased: LeaseSet
  /** When a quorum first found a transaction’s nonce used without a receipt of ours: milliseconds by transaction id. */
  readonly usedSince: Map<string, number>
}

/** Accounts that are processed in parallel after their batch failed. */
const aloneAtOnce = 8

/**
 * Processes accounts in one batch. When the batch fails, processes each account separately, so that one does not block others. Throws only when a
 * single account was given and failed.
 */
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

/** Logs that an account's lane failed. The next turn retries. */
export function logStalled({ deps, chain }: LaneParts, sender: Address) {
  return (error: unknown): [] => {
    const details = { err: error, network: chain.network.name, sender }
    deps.log.warn(details, 'the lane of an account failed; will retry')
    return []
  }
}

/** Logs that one transaction could not be followed. The next turn retries. */
export function logNotFollowed({ deps }: Pick<LaneParts, 'deps'>, { id }: TransactionRow, error: unknown): void {
  deps.log.error({ err: error, transactionId: id }, 'a transaction could not be followed; will retry')
}
