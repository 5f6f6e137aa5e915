import { type Auditing, auditOperator } from '../audit.ts'
import type { Db, Tx } from '../db/db.ts'
import { lockState, type Mark, markRestored, moveSequences, type WitnessState } from './store.ts'
import { findNewestMark, isBefore, type Marks, nameOf } from './witness.ts'

export interface RestoreOptions extends Auditing {
  readonly db: Db
  readonly marks: Marks
  /** Begin a generation even where the database is not behind: whoever restored it restored the marks with it. */
  readonly isForced: boolean
  /** How far every sequence is moved. */
  readonly sequenceGap: number
  /** Moves what else must not be given twice, in the same transaction; returns what the log says of it. */
  readonly move: (tx: Tx) => Promise<Readonly<Record<string, unknown>>>
}

/** `unserved`: no service has ever run on the database. `current`: nothing was lost. */
export type RestoreOutcome =
  | { readonly outcome: 'unserved' | 'current' }
  | { readonly outcome: 'restored'; readonly generation: number; readonly details: Readonly<Record<string, unknown>> }

/**
 * Takes a restored database into service: moves whatever it would give a second time, and begins a generation, in which every lane is compared
 * with the chain before it plans. Harmless twice: the second time the database is current. Killed after its commit, it has done everything;
 * the generation's first mark is then made by the service.
 */
export async function takeIntoService(options: RestoreOptions): Promise<RestoreOutcome> {
  const { db, marks, clock, isForced, sequenceGap, move } = options
  const outcome = await db.tx(async (tx): Promise<RestoreOutcome & { readonly made?: WitnessState }> => {
    const state = await lockState(tx)
    if (state === undefined) return { outcome: 'unserved' }
    const newest = await findNewestMark(marks, state.deployment)
    if (!isForced && !isLost(state, newest)) return { outcome: 'current' }
    const made = { deployment: state.deployment, ...markAfter(state, newest ?? state) }
    await markRestored(tx, made, clock.now())
    const sequences = await moveSequences(tx, sequenceGap)
    const details = { generation: made.generation, sequences, ...(await move(tx)) }
    await auditOperator(options, tx, { action: 'database.restored', target: state.deployment, details })
    return { outcome: 'restored', generation: made.generation, details, made }
  })
  if ('made' in outcome && outcome.made !== undefined) await marks.create(outcome.made.deployment, nameOf(outcome.made))
  return outcome
}

function isLost(state: WitnessState, newest: Mark | undefined): boolean {
  return newest === undefined ? state.generation > 0 || state.counter > 0n : isBefore(state, newest)
}

function markAfter(left: Mark, right: Mark): Mark {
  return {
    generation: Math.max(left.generation, right.generation) + 1,
    counter: (left.counter > right.counter ? left.counter : right.counter) + 1n,
  }
}
