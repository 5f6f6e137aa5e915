import type { Network } from '@purser/protocol'
import { keepLeases } from '../../platform/leases/leases.ts'
import { pause } from '../../platform/work/loop.ts'
import { startDueLoop } from '../../platform/work/probe.ts'
import { sendAlone } from './alone.ts'
import { sendBatch } from './batch.ts'
import { checkRelays } from './check.ts'
import type { RelayerParts } from './parts.ts'
import { type DueRow, isAnyDue, listDue, listForgotten, makeDue } from './queue-store.ts'

const pollMs = 200
const batchingMs = 20
const failureMs = 500
const reconcileMs = 30_000

export interface Relayer {
  /** Reads the queue at once, because something was enqueued. */
  notify(): void
  stop(): Promise<void>
}

/** The tasks of a network. Each runs independently. */
type Task = 'batch' | 'alone' | 'check'

/**
 * Sends signed payloads on every network of the settler. Only the process that leases a network sends there; should two processes
 * ever overlap, the rows' locks still make each step happen once.
 */
export function startRelayer(parts: RelayerParts): Relayer {
  const stopping = new AbortController()
  const drivers = parts.networks.map((network) => new NetworkDriver(parts, network, stopping.signal))
  const leases = keepLeases({
    deps: parts.ctx,
    shares: parts.networks.map(({ name }) => ({ scope: scopeOf(name), shard: 0 })),
    leaseMs: parts.timings.leaseMs,
    onTaken: () => loop.wake(),
  })
  const run = async (): Promise<undefined> => {
    await pollOnce(
      parts,
      drivers.filter(({ network }) => leases.leasesOf(scopeOf(network.name)).leases.length > 0),
    )
  }
  const names = parts.networks.map(({ name }) => name)
  const { probe, log } = parts.ctx
  const loop = startDueLoop({
    name: 'relayer',
    everyMs: pollMs,
    failureMs,
    probe,
    isDue: () => isAnyDue(names),
    log,
    run,
  })
  return {
    notify: loop.wake,
    async stop() {
      stopping.abort()
      await loop.stop()
      await Promise.all(drivers.map((driver) => driver.rest()))
      await leases.stop()
    },
  }
}

function scopeOf(network: string): string {
  return `relayer/${network}`
}

/** One statement for all networks that this process leases. */
async function pollOnce({ ctx }: RelayerParts, leased: readonly NetworkDriver[]): Promise<void> {
  if (leased.length === 0) return
  const due = await listDue(
    ctx.db,
    leased.map(({ network }) => network.name),
  )
  for (const row of due) leased.find(({ network }) => network.name === row.network)?.start(row)
}

/** Runs one pass over a network without the loop, for tests: each kind of task that is due, once. */
export async function passRelays(parts: RelayerParts, network: Network): Promise<void> {
  const [due] = await listDue(parts.ctx.db, [network.name])
  const searches: Promise<void>[] = []
  if (due?.check === true) await checkRelays(parts, network, (search) => searches.push(search))
  await Promise.all(searches)
  if (due?.batch === true) await sendBatch(parts, network)
  if (due?.alone === true) await sendAlone(parts, network)
}

/** The tasks of one network. */
class NetworkDriver {
  readonly network: Network
  readonly #parts: RelayerParts
  readonly #stopped: AbortSignal
  readonly #running = new Map<Task, Promise<void>>()
  #reconciledAtMs = Number.NEGATIVE_INFINITY
  #reconciling: Promise<void> | undefined
  readonly #searches = new Set<Promise<void>>()

  constructor(parts: RelayerParts, network: Network, stopped: AbortSignal) {
    this.#parts = parts
    this.network = network
    this.#stopped = stopped
  }

  /** Resolves when none of its tasks is running. */
  async rest(): Promise<void> {
    await Promise.all([...this.#running.values(), this.#reconciling])
    await Promise.all(this.#searches)
  }

  readonly #beside = (search: Promise<void>): void => {
    const ended = search.finally(() => this.#searches.delete(ended))
    this.#searches.add(ended)
  }

  /** Starts the due tasks that are not running. */
  start(due: DueRow): void {
    const { ctx } = this.#parts
    for (const task of ['check', 'batch', 'alone'] as const) {
      if (!due[task] || this.#running.has(task)) continue
      const run = this.#run(task)
        .catch(async (error: unknown) => {
          ctx.log.error({ err: error, network: this.network.name, task }, 'a task of the relayer failed; it is retried')
          await pause(failureMs, this.#stopped)
        })
        .finally(() => this.#running.delete(task))
      this.#running.set(task, run)
    }
    this.#reconcile()
  }

  /** Repeats the task while there is more of it. */
  async #run(task: Task): Promise<void> {
    for (let isMore = true; isMore && !this.#stopped.aborted; ) {
      if (task === 'check') isMore = await checkRelays(this.#parts, this.network, this.#beside)
      else if (task === 'alone') isMore = await sendAlone(this.#parts, this.network)
      else {
        const outcome = await sendBatch(this.#parts, this.network)
        if (outcome === 'gathering') await pause(batchingMs, this.#stopped)
        isMore = outcome === 'gathering' || (outcome === 'sent' && (await this.#hasBatch()))
      }
    }
  }

  async #hasBatch(): Promise<boolean> {
    const [due] = await listDue(this.#parts.ctx.db, [this.network.name])
    return due?.batch === true
  }

  /** Runs the slow pass now and then; nothing waits for it. */
  #reconcile(): void {
    const nowMs = performance.now()
    if (nowMs - this.#reconciledAtMs < reconcileMs) return
    this.#reconciledAtMs = nowMs
    this.#reconciling = reconcile(this.#parts, this.network)
  }
}

/** The slow pass: re-enqueues relays that a process lost by dying. */
async function reconcile({ ctx }: RelayerParts, network: Network): Promise<void> {
  try {
    const forgotten = await listForgotten(ctx.db, network.name, reconcileMs)
    if (forgotten.length === 0) return
    ctx.log.error(
      { network: network.name, queues: forgotten.length },
      'relays waited in no queue; they are enqueued again',
    )
    await makeDue(ctx.db, forgotten)
  } catch (error) {
    ctx.log.warn({ err: error, network: network.name }, 'the queues could not be compared with the waiting relays')
  }
}
