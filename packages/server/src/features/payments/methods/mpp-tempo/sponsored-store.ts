import { z } from 'zod'
import { type Queryable, sql, type Tx } from '../../../../platform/db/db.ts'

/** A payer on one network. */
interface Sponsored {
  readonly network: string
  readonly payer: string
}

/** Most outdated rows that one failure deletes. */
const deletedMax = 10

/** Records that a payer's sponsored transaction failed in a block, and deletes some of the failures from before `since`. */
export async function insertFailure(
  tx: Tx,
  { network, payer }: Sponsored,
  { failedAt, since }: { readonly failedAt: Date; readonly since: Date },
): Promise<void> {
  await tx.run(sql`
    delete from sponsored_failures where (network, payer) in (
      select network, payer from sponsored_failures where failed_at < ${since} order by failed_at limit ${deletedMax} for update skip locked)`)
  await tx.run(sql`
    insert into sponsored_failures (network, payer, failed_at) values (${network}, lower(${payer}), ${failedAt})
    on conflict (network, payer) do update set failed_at = greatest(sponsored_failures.failed_at, excluded.failed_at)`)
}

/** Whether a sponsored transaction of the payer has failed in a block since then, at any organisation. */
export async function hasFailed(db: Queryable, { network, payer }: Sponsored, since: Date): Promise<boolean> {
  const { is } = await db.one(
    z.object({ is: z.boolean() }),
    sql`
    select exists (
      select from sponsored_failures where network = ${network} and payer = lower(${payer}) and failed_at > ${since}) as is`,
  )
  return is
}
