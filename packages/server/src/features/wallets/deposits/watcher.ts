import type { Network } from '@purser/protocol'
import type { Environment } from '../../../platform/ctx.ts'
import { newId } from '../../../platform/ids.ts'
import { pause } from '../../../platform/work/loop.ts'
import type { Deps } from '../ports.ts'
import { type Lease, releaseLease, renewLease, takeLease } from './cursor-store.ts'
import { createFollower } from './follow.ts'
import { pollMsOf } from './pace.ts'
import { LeadLost } from './store-scan.ts'
import { createWatched, type Watched } from './watched.ts'

export interface WatcherOptions {
  /** How long a leader that does not renew keeps its networks. */
  readonly leaseMs: number
  /** Longest interval between two polls of a network's head; the network's own interval if that is shorter. */
  readonly pollMsMax: number
}

export interface DepositWatcher {
  /** Finishes the current step and releases the networks. */
  stop(): Promise<void>
}

const optionsDefault: WatcherOptions = { leaseMs: 6_000, pollMsMax: 3_000 }
const failurePauseMsMax = 15_000

/**
 * Follows every configured network whose environment the deployment serves: transfers to and from watched addresses are booked, and final
 * deposits are reported. Of any number of processes one follows each network, under a lease; if it dies another takes over within seconds.
 */
export function startDepositWatcher(deps: Deps, options: Partial<WatcherOptions> = {}): DepositWatcher {
  const stopping = new AbortController()
  const watched = new Map<Environment, Watched>()
  const watchedOf = (environment: Environment): Watched => {
    const known = watched.get(environment) ?? createWatched(deps, environment)
    watched.set(environment, known)
    return known
  }
  const watcher = { deps, name: newId('job', deps), stopping: stopping.signal, ...optionsDefault, ...options }
  const loops = deps.chains.configured.flatMap((network) => {
    const environment = network.isTestnet ? 'test' : 'live'
    return deps.environments.includes(environment) ? [attend(watcher, network, watchedOf(environment))] : []
  })
  return {
    async stop() {
      stopping.abort()
      await Promise.all(loops)
    },
  }
}

interface Watcher extends WatcherOptions {
  readonly deps: Deps
  readonly name: string
  readonly stopping: AbortSignal
}

/** Tries to take the lease of a network for as long as the process runs, and follows the network while it has it. */
async function attend(watcher: Watcher, network: Network, watched: Watched): Promise<void> {
  const { deps, stopping, leaseMs } = watcher
  while (!stopping.aborted) {
    try {
      const lease = await takeLease(deps.db, network.name, watcher)
      if (lease !== undefined) await lead(watcher, network, watched, lease)
    } catch (error) {
      deps.log.warn({ err: error, network: network.name }, 'the lease of a network could not be requested')
    }
    await pause(leaseMs / 4, stopping)
  }
}

async function lead(watcher: Watcher, network: Network, watched: Watched, lease: Lease): Promise<void> {
  const { deps, stopping } = watcher
  const lost = new AbortController()
  const stopped = AbortSignal.any([stopping, lost.signal])
  const keeping = keep(watcher, lease, stopped).then(() => lost.abort())
  deps.log.info({ network: network.name }, 'this process follows the network')
  try {
    const balances = deps.chains.on(network)
    const following = { deps, network, reads: balances.blocks, balances, watched, lease, stopped }
    await followOn(watcher, network, createFollower(following), stopped)
  } finally {
    lost.abort()
    await keeping
    await releaseLease(deps.db, lease).catch(() => undefined)
  }
}

async function followOn(
  { deps, pollMsMax }: Watcher,
  network: Network,
  follow: () => Promise<void>,
  stopped: AbortSignal,
): Promise<void> {
  const pollMs = Math.min(pollMsMax, pollMsOf(network))
  let failures = 0
  while (!stopped.aborted) {
    try {
      await follow()
      failures = 0
    } catch (error) {
      if (error instanceof LeadLost) return
      failures += 1
      deps.log.warn({ err: error, network: network.name, failures }, 'a network could not be followed; retrying')
    }
    await pause(Math.min(failurePauseMsMax, pollMs * 2 ** Math.max(0, Math.min(failures, 16) - 1)), stopped)
  }
}

/**
 * Renews the lease until it is stopped or another process has the lease. An unavailable database ends nothing, since every write checks the
 * lease.
 */
async function keep({ deps, leaseMs }: Watcher, lease: Lease, stopped: AbortSignal): Promise<void> {
  while (!stopped.aborted) {
    await pause(leaseMs / 3, stopped)
    if (stopped.aborted) return
    const isHeld = await renewLease(deps.db, lease, leaseMs).catch(() => true)
    if (!isHeld) return
  }
}
