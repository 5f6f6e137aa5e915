import { appendAudit } from '../audit.ts'
import { instantOf } from '../clock.ts'
import type { Ctx, Deps } from '../ctx.ts'
import { publishEvent } from '../events.ts'
import { newId } from '../ids.ts'
import { type Job, type Recurring, retryDelayMs } from '../job.ts'
import { buryJob, deleteJob, type LeasedJob, leaseJobs, postponeJob } from './queue.ts'

const leaseMs = 30_000
const batchMost = 20
const pollMs = 500

export interface Runner {
  /** Stops taking jobs and resolves when those under way are done. */
  stop(): Promise<void>
}

/** Runs queued jobs and recurring work of one process. Any number of processes may run side by side. */
export function startRunner(deps: Deps, jobs: readonly Job[], recurring: readonly Recurring[]): Runner {
  const stopping = new AbortController()
  const byName = new Map(jobs.map((job) => [job.name, job]))
  const loops = [
    repeat(deps, stopping.signal, pollMs, 'jobs', async () => {
      const leased = await leaseJobs(deps.db, deps.clock.now(), { most: batchMost, leaseMs })
      await Promise.all(leased.map((entry) => runJob(deps, byName.get(entry.name), entry)))
      return leased.length === batchMost
    }),
    ...recurring.map((entry) =>
      repeat(deps, stopping.signal, entry.everyMs, entry.name, async () => {
        await deps.db.exclusively(`recurring:${entry.name}`, () => entry.run(systemCtx(deps)))
        return false
      }),
    ),
  ]
  return {
    async stop() {
      stopping.abort()
      await Promise.all(loops)
    },
  }
}

async function repeat(
  deps: Deps,
  stopped: AbortSignal,
  everyMs: number,
  name: string,
  step: () => Promise<boolean>,
): Promise<void> {
  while (!stopped.aborted) {
    let more = false
    try {
      more = await step()
    } catch (error) {
      deps.log.error({ err: error, loop: name }, 'background work failed; it will be tried again')
    }
    if (!more) await pause(everyMs, stopped)
  }
}

/** Waits, but not beyond the signal. */
export function pause(ms: number, stopped: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (stopped.aborted) return resolve()
    const done = (): void => {
      clearTimeout(timer)
      stopped.removeEventListener('abort', done)
      resolve()
    }
    const timer = setTimeout(done, ms)
    stopped.addEventListener('abort', done, { once: true })
  })
}

async function runJob(deps: Deps, job: Job | undefined, entry: LeasedJob): Promise<void> {
  if (job === undefined)
    return postponeJob(deps.db, entry.id, instantOf(deps.clock.now().getTime() + leaseMs), 'no such job in this build')
  try {
    await job.run(systemCtx(deps), job.payload.parse(entry.payload) as never)
    await deleteJob(deps.db, entry.id)
    deps.metrics.jobs.inc({ job: job.name, outcome: 'done' })
  } catch (error) {
    await retryOrBury(deps, job, entry, error)
  }
}

async function retryOrBury(deps: Deps, job: Job, entry: LeasedJob, error: unknown): Promise<void> {
  const message = error instanceof Error ? error.message : String(error)
  const dead = entry.attempt >= job.retry.attemptsMax
  deps.log.warn({ err: error, job: job.name, jobId: entry.id, attempt: entry.attempt, dead }, 'job failed')
  deps.metrics.jobs.inc({ job: job.name, outcome: dead ? 'dead' : 'failed' })
  const now = deps.clock.now()
  if (dead) await buryJob(deps.db, entry.id, now, message)
  else await postponeJob(deps.db, entry.id, instantOf(now.getTime() + retryDelayMs(job.retry, entry.attempt)), message)
}

/** The record of a piece of background work: no tenant until the work names one (`forTenant`). */
export function systemCtx(deps: Deps): Omit<Ctx, 'tenant'> {
  return {
    ...deps,
    actor: { kind: 'system' },
    requestId: newId('req', deps),
    idempotency: undefined,
    publish: () => Promise.reject(new Error('background work publishes for a tenant that it names')),
    audit: () => Promise.reject(new Error('background work audits for a tenant that it names')),
  }
}

/** The same record, acting for one tenant. */
export function forTenant(ctx: Omit<Ctx, 'tenant'>, tenant: Ctx['tenant']): Ctx {
  const own: Ctx = {
    ...ctx,
    tenant,
    publish: (tx, type, payload) => publishEvent(own, tx, type, payload),
    audit: (tx, entry) => appendAudit(own, tx, entry),
  }
  return own
}
