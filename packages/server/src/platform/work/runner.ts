import type { Network } from '@purser/protocol'
import { appendAudit } from '../audit.ts'
import type { ActingCtx, Background, Deps, TenantActs } from '../ctx.ts'
import { publishEvent } from '../events.ts'
import { newId } from '../ids.ts'
import { keepLeases } from '../leases/leases.ts'
import type { BoundTask, Detach, RecurringTask, RecurringTaskByNetwork } from '../recurring-task.ts'
import type { Tenant } from '../tenant.ts'
import { startDueLoop } from './due-work.ts'
import { type RunningLoop, startLoop } from './loop.ts'

export interface Runner {
  /** Lets the current work end and releases the leases; nothing runs afterwards. */
  stop(): Promise<void>
}

/** Lease scope of a recurring task. */
export function scopeOf({ name }: Pick<BoundTask, 'name'>): string {
  return `loops/${name}`
}

/**
 * Runs recurring tasks. One process at a time runs each, under a lease by the database's clock: a process that fails is replaced when its
 * leases end, whatever the state of its connections. One that was paused beyond its leases begins nothing under them. A run that it had
 * begun continues beside its successor, which each task allows: see `RecurringTask`.
 */
export function startRunner(
  deps: Pick<Deps, 'db' | 'log' | 'metrics' | 'probe' | 'random'>,
  loops: readonly BoundTask[],
  leaseMs: number,
): Runner {
  const timers = new Map<string, RunningLoop>()
  const continuing = new Set<Promise<void>>()
  const stopping = new AbortController()
  const take = (work: Promise<void>): void => {
    const ended = work.finally(() => continuing.delete(ended))
    continuing.add(ended)
  }
  const detach: Detach = Object.assign(take, { stopping: stopping.signal })
  const leases = keepLeases({
    deps,
    shares: loops.map((entry) => ({ scope: scopeOf(entry), shard: 0 })),
    leaseMs,
    onTaken: (scope) => timers.get(scope)?.wake(),
  })
  for (const entry of loops) {
    const scope = scopeOf(entry)
    const run = async (): Promise<undefined> => {
      if (leases.leasesOf(scope).leases.length > 0) await runOnce(deps, entry, detach)
    }
    const { name, everyMs, isDue } = entry
    const options = { name, everyMs, log: deps.log, run }
    timers.set(scope, isDue === undefined ? startLoop(options) : startDueLoop({ ...options, probe: deps.probe, isDue }))
  }
  return {
    async stop() {
      stopping.abort()
      await Promise.all([...timers.values()].map((timer) => timer.stop()))
      await Promise.all(continuing)
      await leases.stop()
    },
  }
}

async function runOnce(deps: Pick<Deps, 'log' | 'metrics'>, { name, run }: BoundTask, detach: Detach): Promise<void> {
  const count = (outcome: 'done' | 'failed'): void => deps.metrics.tasks.inc({ task: name, outcome })
  try {
    await run(detach)
    count('done')
  } catch (error) {
    count('failed')
    deps.log.error({ err: error, task: name }, 'a recurring task failed; retrying')
  }
}

/** Ties recurring work to the dependencies of its feature. */
export function bindTasks<D extends Deps>(
  deps: D,
  work: readonly (RecurringTask<D> | RecurringTaskByNetwork<D>)[],
): readonly BoundTask[] {
  return work.map((one) => {
    if ('runOn' in one) return loopByNetwork(deps, one)
    const { name, everyMs, isDue, run } = one
    return {
      name,
      everyMs,
      ...(isDue !== undefined && { isDue: () => isDue(deps) }),
      run: (detach) => run({ ...systemCtx(deps), stopping: detach?.stopping }, detach),
    }
  })
}

/** Runs the work of all networks at the same time. A network whose work still continues is left out, so that no run waits for it. */
function loopByNetwork<D extends Deps>(
  deps: D,
  { name, everyMs, networks, isDue, runOn }: RecurringTaskByNetwork<D>,
): BoundTask {
  const busy = new Set<string>()
  const runSafely = async (network: Network, stopping: AbortSignal | undefined): Promise<void> => {
    busy.add(network.name)
    try {
      await runOn({ ...systemCtx(deps), stopping }, network)
    } catch (error) {
      deps.log.warn({ err: error, task: name, network: network.name }, 'the work of a network failed; retrying')
    } finally {
      busy.delete(network.name)
    }
  }
  return {
    name,
    everyMs,
    isDue: () =>
      isDue(
        networks(deps).map((network) => network.name),
        deps,
      ),
    async run(detach) {
      const begun = networks(deps)
        .filter((network) => !busy.has(network.name))
        .map((network) => runSafely(network, detach?.stopping))
      if (detach === undefined) await Promise.all(begun)
      else for (const one of begun) detach(one)
    },
  }
}

/** Context of background work: no tenant until the work names one (`forTenant`). */
export function systemCtx<D extends Pick<Deps, 'clock' | 'random'>>(deps: D): D & Background {
  return {
    ...deps,
    actor: { kind: 'system' },
    requestId: newId('req', deps),
    idempotency: undefined,
    publish: () => Promise.reject(new Error('background work must publish for a named tenant')),
    audit: () => Promise.reject(new Error('background work must audit for a named tenant')),
  }
}

/** The context, acting for one tenant. */
export function forTenant<C extends ActingCtx>(ctx: C, tenant: Tenant): C & TenantActs {
  const own: C & TenantActs = {
    ...ctx,
    tenant,
    publish: (tx, type, payload) => publishEvent(own, tx, type, payload),
    audit: async (tx, entry) => appendAudit(own, tx, entry),
  }
  return own
}
