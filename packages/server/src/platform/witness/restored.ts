import { type Auditing, auditOperator } from '../audit.ts'
import type { Db, Tx } from '../db/db.ts'
import { lockState, type Mark, markRestored, moveSequences, type WitnessState } from './store.ts'
import { findNewestMark, isBefore, type Marks, nameOf } from './witness.ts'

export interface RestoreOptions extends Auditing {
  readonly db: Db
  readonly marks: Marks
  /** Begin a generation even if the database is not behind: the marks were restored with it. */
  readonly isForced: boolean
  /** Increment of every sequence. */
  readonly sequenceGap: number
  /** Moves other values that must not be assigned twice, in the same transaction; returns the details for the log. */
  readonly move: (tx: Tx) => Promise<Readonly<Record<string, unknown>>>
}

/** `unserved`: no service has ever run on the database. `current`: nothing was lost. */
export type RestoreOutcome =
  | { readonly outcome: 'unserved' | 'current' }
  | { readonly outcome: 'restored'; readonly generation: number; readonly details: Readonly<Record<string, unknown>> }

/**
 * Puts a restored database into service: moves everything that it would assign a second time, and begins a generation, in which every lane
 * is compared with the chain before it plans. Idempotent: the second time the database is current. The generation's mark is made before the
 * commit: killed in between, the database is behind that mark, and the operator runs it again.
 */
export async function takeIntoService(options: RestoreOptions): Promise<RestoreOutcome> {
  const { db, marks, clock, isForced, sequenceGap, move } = options
  return db.tx(async (tx): Promise<RestoreOutcome> => {
    const state = await lockState(tx)
    if (state === undefined) return { outcome: 'unserved' }
    const newest = await findNewestMark(marks, state.deployment)
    if (!isForced && !isLost(state, newest)) return { outcome: 'current' }
    const made = { deployment: state.deployment, ...markAfter(state, newest ?? state) }
    await markRestored(tx, made, clock.now())
    const sequences = await moveSequences(tx, sequenceGap)
    const details = { generation: made.generation, sequences, ...(await move(tx)) }
    await auditOperator(options, tx, { action: 'database.restored', target: state.deployment, details })
    await marks.create(made.deployment, nameOf(made))
    return { outcome: 'restored', generation: made.generation, details }
  })
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
