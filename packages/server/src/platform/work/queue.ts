import { z } from 'zod'
import { instantOf } from '../clock.ts'
import type { Deps } from '../ctx.ts'
import { type Queryable, sql, type Tx } from '../db/db.ts'
import { newId } from '../ids.ts'
import type { Job } from '../job.ts'

/** Puts a job into the queue in the caller's transaction: it runs if and only if that commits. */
export async function enqueue(
  deps: Pick<Deps, 'clock' | 'random'>,
  tx: Tx,
  job: Job,
  payload: unknown,
  runAt: Date = deps.clock.now(),
): Promise<void> {
  await tx.run(sql`
    insert into jobs (id, name, payload, run_at, created_at)
    values (${newId('job', deps)}, ${job.name}, ${JSON.stringify(payload)}, ${runAt}, ${deps.clock.now()})`)
}

export const LeasedJob = z.object({ id: z.string(), name: z.string(), payload: z.unknown(), attempt: z.number() })
export type LeasedJob = z.output<typeof LeasedJob>

/** Takes due jobs for a while. A process that dies gives them back when the lease ends. */
export function leaseJobs(
  db: Queryable,
  now: Date,
  limits: { readonly most: number; readonly leaseMs: number },
): Promise<LeasedJob[]> {
  return db.many(
    LeasedJob,
    sql`
    update jobs set leased_until = ${instantOf(now.getTime() + limits.leaseMs)}, attempt = attempt + 1
    where id in (
      select id from jobs
      where dead_at is null and run_at <= ${now} and (leased_until is null or leased_until < ${now})
      order by run_at limit ${limits.most} for update skip locked)
    returning id, name, payload, attempt`,
  )
}

export async function deleteJob(db: Queryable, jobId: string): Promise<void> {
  await db.run(sql`delete from jobs where id = ${jobId}`)
}

export async function postponeJob(db: Queryable, jobId: string, runAt: Date, error: string): Promise<void> {
  await db.run(sql`update jobs set run_at = ${runAt}, leased_until = null, last_error = ${error} where id = ${jobId}`)
}

export async function buryJob(db: Queryable, jobId: string, now: Date, error: string): Promise<void> {
  await db.run(sql`update jobs set dead_at = ${now}, leased_until = null, last_error = ${error} where id = ${jobId}`)
}
