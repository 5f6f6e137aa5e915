import { z } from 'zod'
import { type Queryable, sql, type Tx } from '../db/db.ts'

/** A point in the history of a deployment. Marks are ordered by generation, then by counter. */
export interface Mark {
  /** Number of previous restores. */
  readonly generation: number
  readonly counter: bigint
}

const State = z.object({ deployment: z.string(), generation: z.number(), counter: z.bigint() })
/** The state that the database records. */
export type WitnessState = z.output<typeof State>

/** Undefined in a database that was never served. */
export async function findState(db: Queryable): Promise<WitnessState | undefined> {
  const { isThere } = await db.one(
    z.object({ isThere: z.boolean() }),
    sql`select to_regclass('witness_state') is not null as is_there`,
  )
  return isThere ? db.maybeOne(State, sql`select deployment, generation, counter from witness_state`) : undefined
}

/** Names a database that was never served; an existing name is kept. */
export async function insertState(db: Queryable, deployment: string): Promise<void> {
  await db.run(sql`insert into witness_state (deployment) values (${deployment}) on conflict do nothing`)
}

/** Takes the next mark. Everything committed before it is in every copy of the database that has this mark. */
export function advanceState(db: Queryable): Promise<WitnessState> {
  return db.one(State, sql`update witness_state set counter = counter + 1 returning deployment, generation, counter`)
}

/** The state, locked until the transaction ends. */
export function lockState(tx: Tx): Promise<WitnessState | undefined> {
  return tx.maybeOne(State, sql`select deployment, generation, counter from witness_state for update`)
}

/** Begins a generation. */
export async function markRestored(tx: Tx, { generation, counter }: Mark, now: Date): Promise<void> {
  await tx.run(
    sql`update witness_state set generation = ${generation}, counter = ${counter}, restored_at = ${now} where generation < ${generation}`,
  )
}

/** Moves every sequence of the database forward by this gap, or to its end; returns how many there are. */
export async function moveSequences(tx: Tx, gap: number): Promise<number> {
  const rows = await tx.many(
    z.object({ moved: z.bigint() }),
    sql`
    select setval(format('%I.%I', schemaname, sequencename)::regclass, least(coalesce(last_value, start_value) + ${gap}::bigint, max_value)) as moved
    from pg_sequences where schemaname = current_schema()`,
  )
  return rows.length
}
