import { z } from 'zod'
import type { Tenant } from '../../platform/ctx.ts'
import { type Queryable, type Sql, sql, type Tx } from '../../platform/db/db.ts'
import type { LastWrite } from '../../platform/db/last-writes.ts'

const NanoUsd = z.string().transform((text) => BigInt(text))

/** The budget of a day on one network, of an organization in one environment. */
export interface GasBudget {
  readonly tenant: Tenant
  readonly network: string
  readonly day: string
}

/** Returns what is reserved and used of a day's budgets, by network, in billionths of a US dollar, without a lock. */
export async function listGasTaken(db: Queryable, tenant: Tenant, day: string): Promise<ReadonlyMap<string, bigint>> {
  const rows = await db.many(
    z.object({ network: z.string(), nanoUsd: NanoUsd }),
    sql`
    select network, nano_usd from gas_budgets
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and day = ${day}`,
  )
  return new Map(rows.map((row) => [row.network, row.nanoUsd]))
}

/**
 * Returns the name of the lock of an organization's budgets on a network. A transaction that takes from a budget with a limit
 * locks it first, until it ends. It is locked by name, because the row of a day does not exist before its first payment.
 */
export function gasLockName({ tenant: { organisationId, environment }, network }: Omit<GasBudget, 'day'>): string {
  return `gas-budget:${organisationId}/${environment}/${network}`
}

/** Locks a budget and returns what is taken of it. */
export async function lockGasTaken(tx: Tx, budget: GasBudget): Promise<bigint> {
  await tx.run(sql`select pg_advisory_xact_lock(hashtextextended(${gasLockName(budget)}, 0))`)
  return (await listGasTaken(tx, budget.tenant, budget.day)).get(budget.network) ?? 0n
}

export interface GasChange extends GasBudget {
  /** Negative returns gas to the budget. */
  readonly nanoUsd: bigint
}

/** Adds to budgets of any organisations. */
export async function changeGas(tx: Queryable, changes: readonly GasChange[]): Promise<void> {
  const statement = changeOf(changes)
  if (statement !== undefined) await tx.run(statement)
}

/** One statement, which locks the rows of the budgets in one order; undefined if nothing changes. */
function changeOf(changes: readonly GasChange[]): Sql | undefined {
  const rows = changes
    .filter(({ nanoUsd }) => nanoUsd !== 0n)
    .map(({ tenant: { organisationId, environment }, network, day, nanoUsd }) => {
      return { organisationId, environment, network, day, nanoUsd: nanoUsd.toString() }
    })
  if (rows.length === 0) return undefined
  return sql`
    insert into gas_budgets (organisation_id, environment, network, day, nano_usd)
    select "organisationId", environment, network, day, sum("nanoUsd")
    from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as given ("organisationId" text, environment text, network text, day date, "nanoUsd" numeric)
    group by "organisationId", environment, network, day
    order by "organisationId" collate "C", environment collate "C", network collate "C", day
    on conflict (organisation_id, environment, network, day) do update set nano_usd = gas_budgets.nano_usd + excluded.nano_usd`
}

const gasChanges: LastWrite<GasChange> = { rank: 1, prepare: async (_tx, changes) => changeOf(changes) }

/** Adds to budgets when the transaction is about to commit, before its audit records. */
export function changeGasLast(tx: Tx, changes: readonly GasChange[]): void {
  tx.writeLast(gasChanges, changes)
}
