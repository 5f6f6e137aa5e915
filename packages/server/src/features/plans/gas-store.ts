import { z } from 'zod'
import type { Tenant } from '../../platform/ctx.ts'
import { type Queryable, sql, type Tx } from '../../platform/db/db.ts'

const Gas = z.string().transform((text) => BigInt(text))

/** Gas reserved on a day, by network, without holding it. */
export async function listGasReserved(
  db: Queryable,
  tenant: Tenant,
  day: string,
): Promise<ReadonlyMap<string, bigint>> {
  const rows = await db.many(
    z.object({ network: z.string(), gasReserved: Gas }),
    sql`
    select network, gas_reserved from settlement_budgets
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and day = ${day}`,
  )
  return new Map(rows.map((row) => [row.network, row.gasReserved]))
}

/** Locks the day's gas budget and answers what is reserved of it. */
export async function lockGasReserved(tx: Tx, tenant: Tenant, network: string, day: string): Promise<bigint> {
  await tx.run(sql`
    insert into settlement_budgets (organisation_id, environment, network, day, gas_reserved)
    values (${tenant.organisationId}, ${tenant.environment}, ${network}, ${day}, 0) on conflict do nothing`)
  const row = await tx.one(
    z.object({ gasReserved: Gas }),
    sql`
    select gas_reserved from settlement_budgets
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and network = ${network} and day = ${day}
    for update`,
  )
  return row.gasReserved
}

/** Reserves gas of a day's budget, which the caller holds by `lockGasReserved`. */
export async function addGasReserved(tx: Tx, tenant: Tenant, network: string, day: string, gas: bigint): Promise<void> {
  await tx.run(sql`
    update settlement_budgets set gas_reserved = gas_reserved + ${gas.toString()}
    where organisation_id = ${tenant.organisationId} and environment = ${tenant.environment} and network = ${network} and day = ${day}`)
}
