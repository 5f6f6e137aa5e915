import type { Network } from '@purser/protocol'
import type { Environment } from '../../../platform/ctx.ts'
import { newId } from '../../../platform/ids.ts'
import { type RunningLoop, startLoop } from '../../../platform/work/loop.ts'
import type { Deps } from '../ports.ts'
import { releaseLease, renewLease, takeLease, type WatcherLease } from './cursor-store.ts'
import { createFollower } from './follow.ts'
import { pollMsOf } from './range-size.ts'
import { LeadLost } from './store-scan.ts'
import { createWatched, type Watched } from './watched.ts'

export interface WatcherOptions {
  /** Milliseconds for which a leader that does not renew keeps its networks. */
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
  const watched = new Map<Environment, Watched>()
  const watchedOf = (environment: Environment): Watched => {
    const known = watched.get(environment) ?? createWatched(deps, environment)
    watched.set(environment, known)
    return known
  }
  const watcher = { deps, name: newId('job', deps), ...optionsDefault, ...options }
  const networks = deps.chains.configured.flatMap((network) => {
    const environment = network.isTestnet ? 'test' : 'live'
    return deps.environments.includes(environment) ? [watchNetwork(watcher, network, watchedOf(environment))] : []
  })
  return {
    async stop() {
      await Promise.all(networks.map((one) => one.stop()))
    },
  }
}

interface Watcher extends WatcherOptions {
  readonly deps: Deps
  readonly name: string
}

/** A network while this process has its lease. */
interface Leading {
  readonly lease: WatcherLease
  /** Aborted when another process has the lease. */
  readonly lost: AbortController
  follow(): Promise<void>
  failures: number
  /** The time at which it began or last succeeded. */
  succeededAt: Date
}

/**
 * Follows a network while this process has its lease, and tries to take the lease otherwise. An unavailable database ends nothing, since
 * every write checks the lease.
 */
function watchNetwork(watcher: Watcher, network: Network, watched: Watched): DepositWatcher {
  const { deps, leaseMs } = watcher
  let leading: Leading | undefined
  const release = async (): Promise<void> => {
    const ended = leading
    leading = undefined
    if (ended !== undefined) await endFollowing(deps, network, ended)
  }
  const following = startLoop({
    name: 'deposits.follow',
    everyMs: leaseMs / 4,
    log: deps.log,
    async run(stopped) {
      const current = leading ?? (await take(watcher, network, watched, stopped))
      leading = current
      if (current === undefined) return undefined
      const nextMs = await followOnce(watcher, network, current)
      if (!current.lost.signal.aborted) return nextMs
      await release()
      return undefined
    },
  })
  const renewing = startRenewing(
    watcher,
    () => leading,
    () => following.wake(),
  )
  return {
    async stop() {
      await following.stop()
      await renewing.stop()
      await release()
    },
  }
}

async function endFollowing(
  deps: Pick<Deps, 'db' | 'log' | 'metrics'>,
  network: Network,
  { lease }: Leading,
): Promise<void> {
  showFailures(deps, network, undefined)
  await releaseLease(deps.db, lease).catch((error: unknown) =>
    deps.log.warn({ err: error, network: network.name }, 'a lease was not released; it ends by itself'),
  )
}

/** Renews the lease of the network while this process has it. Ends the work under a lost lease, and calls `onLost`. */
function startRenewing(
  { deps, leaseMs }: Watcher,
  current: () => Leading | undefined,
  onLost: () => void,
): RunningLoop {
  return startLoop({
    name: 'deposits.renew-lease',
    everyMs: leaseMs / 3,
    log: deps.log,
    isTraced: false,
    async run() {
      const renewed = current()
      if (renewed === undefined || (await renewLease(deps.db, renewed.lease, leaseMs).catch(() => true)))
        return undefined
      renewed.lost.abort()
      onLost()
      return undefined
    },
  })
}

async function take(
  watcher: Watcher,
  network: Network,
  watched: Watched,
  stopped: AbortSignal,
): Promise<Leading | undefined> {
  const { deps } = watcher
  try {
    const lease = await takeLease(deps.db, network.name, watcher)
    if (lease === undefined) return undefined
    deps.log.info({ network: network.name }, 'this process follows the network')
    const lost = new AbortController()
    const balances = deps.chains.on(network)
    const ended = AbortSignal.any([stopped, lost.signal])
    const follow = createFollower({ deps, network, reads: balances.blocks, balances, watched, lease, stopped: ended })
    return { lease, lost, follow, failures: 0, succeededAt: deps.clock.now() }
  } catch (error) {
    deps.log.warn({ err: error, network: network.name }, 'the lease of a network could not be requested')
    return undefined
  }
}

/** Reads the network to its head once. Returns the milliseconds until the next time: longer after each failure in a row. */
async function followOnce({ deps, pollMsMax }: Watcher, network: Network, leading: Leading): Promise<number> {
  const pollMs = Math.min(pollMsMax, pollMsOf(network))
  try {
    await leading.follow()
    leading.failures = 0
    leading.succeededAt = deps.clock.now()
  } catch (error) {
    if (error instanceof LeadLost) leading.lost.abort()
    else {
      leading.failures += 1
      const { failures } = leading
      deps.log.warn({ err: error, network: network.name, failures }, 'a network could not be followed; retrying')
    }
  }
  const { failures, succeededAt } = leading
  showFailures(deps, network, failures === 0 ? undefined : { failures, succeededAt })
  return Math.min(failurePauseMsMax, pollMs * 2 ** Math.max(0, Math.min(leading.failures, 16) - 1))
}

/** Shows how often in a row a network could not be read, and since when; undefined if it was read, or another process reads it. */
function showFailures(
  { metrics }: Pick<Deps, 'metrics'>,
  { name: network }: Network,
  failing: Pick<Leading, 'failures' | 'succeededAt'> | undefined,
): void {
  metrics
    .gauge('purser_deposit_failures', 'How often in a row a network could not be read for deposits.', ['network'])
    .labels({ network })
    .set(failing?.failures ?? 0)
  metrics
    .gauge('purser_deposit_failing_since', 'Unix time of the last reading before the failures; 0 without one.', [
      'network',
    ])
    .labels({ network })
    .set(failing === undefined ? 0 : failing.succeededAt.getTime() / 1_000)
}
