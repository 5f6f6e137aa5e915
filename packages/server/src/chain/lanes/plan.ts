import type { Deps } from '../../platform/ctx.ts'
import type { Tx } from '../../platform/db/db.ts'
import { newId } from '../../platform/ids.ts'
import type { LaneKey } from './compare-store.ts'
import { takeNonces } from './nonce-store.ts'
import type { ChainTransactionId, PlannedTransaction } from './port.ts'
import { insertTransactions, type NewTransaction } from './store.ts'

export interface Planning {
  readonly lane: LaneKey
  readonly planned: PlannedTransaction
}

type PlanDeps = Pick<Deps, 'clock' | 'random' | 'witness'>

/**
 * Assigns nonces and stores the transactions in the caller's database transaction. Each lane sends its transactions in the given order. Throws
 * `service-unavailable` while the database is behind its witness or a lane was not compared with the chain since a restore.
 */
export async function planAll(deps: PlanDeps, tx: Tx, wanted: readonly Planning[]): Promise<ChainTransactionId[]> {
  deps.witness.requireCurrent()
  const lanes = Map.groupBy(wanted, ({ lane }) => nameOf(lane))
  const counts = [...lanes.values()].flatMap(([first, ...rest]) =>
    first === undefined ? [] : [{ lane: first.lane, count: rest.length + 1 }],
  )
  const taken = await takeNonces(tx, counts)
  const next = new Map(taken.map((lane) => [nameOf(lane), lane.firstNonce]))
  const createdAt = deps.clock.now()
  const made = wanted.map(({ lane, planned }): NewTransaction => {
    const nonce = next.get(nameOf(lane))
    if (nonce === undefined) throw new Error('the lane was not prepared')
    next.set(nameOf(lane), nonce + 1n)
    return { id: newId('ctx', deps), lane, nonce, createdAt, planned }
  })
  await insertTransactions(tx, made)
  return made.map(({ id }) => id)
}

/** Assigns one transaction its nonce and stores it in the caller's database transaction. */
export async function planOne(deps: PlanDeps, tx: Tx, wanted: Planning): Promise<ChainTransactionId> {
  const [id] = await planAll(deps, tx, [wanted])
  if (id === undefined) throw new Error('a transaction was not planned')
  return id
}

function nameOf({ network, sender }: LaneKey): string {
  return `${network} ${sender}`
}
