import { z } from 'zod'
import { type Queryable, sql } from '../src/platform/db/db.ts'
import type { Witness } from '../src/platform/witness/witness.ts'

/** The witness of a database that is never restored, for tests of other parts. */
export const steadyWitness: Witness = {
  requireCurrent: () => undefined,
  isCurrent: () => true,
  cover: async () => undefined,
  coverRepetition: async () => undefined,
  compare: async () => undefined,
  status: async () => 'current',
}

/** How often the witness of a database has covered what was committed. */
export async function timesCovered(db: Queryable): Promise<bigint> {
  return (await db.one(z.object({ counter: z.bigint() }), sql`select counter from witness_state`)).counter
}
