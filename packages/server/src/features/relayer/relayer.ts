import type { Network } from '@purser/protocol'
import { keepLeases } from '../../platform/leases/leases.ts'
import type { Detach } from '../../platform/recurring-task.ts'
import { startDueLoop } from '../../platform/work/due-work.ts'
import { pause } from '../../platform/work/loop.ts'
import { withShareOwners } from '../plans/index.ts'
import { admit, endTurn, oneOfEach, planTransaction, type SelectedRelay, selectBatch, sendBatch } from './batch.ts'
import type { Trial } from './forms/form.ts'
import { faultOf, findUse, nonceStates, tryAlone } from './forms/index.ts'
import { type Conclusion, conclude, purposeOf, type RelayerParts } from './parts.ts'
import type { FailedRelay, Relay } from './port.ts'
import { type DueRow, isAnyDue, listDue, listForgotten, makeDue, releaseRelays } from './queue-store.ts'
import {
  type CheckRow,
  listSignersInFlight,
  listWaiting,
  lockWaiting,
  postpone,
  setToCheck,
  stopChecks,
  takeChecks,
  watchOn,
} from './store.ts'

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
type Task = 'batch' | 'single' | 'check'

/**
 * Sends signed payloads on every network of the settler. Only the process that leases a network sends there; should two processes
 * ever overlap, the rows' locks still make each step happen once.
 */
export function startRelayer(parts: RelayerParts): Relayer {
  const stopping = new AbortController()
  const drivers = parts.networks.map((network) => new RelayDriver(parts, network, stopping.signal))
  const leases = keepLeases({
    deps: parts.ctx,
    shares: parts.networks.map(({ name }) => ({ scope: scopeOf(name), shard: 0 })),
    leaseMs: parts.timings.leaseMs,
    onTaken: () => loop.wake(),
  })
  const isLeased = ({ network }: RelayDriver) => leases.leasesOf(scopeOf(network.name)).leases.length > 0
  const run = async (): Promise<undefined> => {
    await pollOnce(parts, drivers.filter(isLeased))
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
      await Promise.all(drivers.map((driver) => driver.waitUntilIdle()))
      await leases.stop()
    },
  }
}

function scopeOf(network: string): string {
  return `relayer/${network}`
}

/** One statement for all networks that this process leases. */
async function pollOnce({ ctx }: RelayerParts, leased: readonly RelayDriver[]): Promise<void> {
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
  if (due?.single === true) await sendSingly(parts, network)
}

/** The tasks of one network. */
class RelayDriver {
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
  async waitUntilIdle(): Promise<void> {
    await Promise.all([...this.#running.values(), this.#reconciling])
    await Promise.all(this.#searches)
  }

  readonly #detach = (search: Promise<void>): void => {
    const ended = search.finally(() => this.#searches.delete(ended))
    this.#searches.add(ended)
  }

  /** Starts the due tasks that are not running. */
  start(due: DueRow): void {
    const { ctx } = this.#parts
    for (const task of ['check', 'batch', 'single'] as const) {
      if (!due[task] || this.#running.has(task)) continue
      const run = this.#run(task)
        .catch(async (error: unknown) => {
          ctx.log.error({ err: error, network: this.network.name, task }, 'a task of the relayer failed; retrying')
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
      if (task === 'check') isMore = await checkRelays(this.#parts, this.network, this.#detach)
      else if (task === 'single') isMore = await sendSingly(this.#parts, this.network)
      else {
        const outcome = await sendBatch(this.#parts, this.network)
        if (outcome === 'collecting') await pause(batchingMs, this.#stopped)
        isMore = outcome === 'collecting' || (outcome === 'sent' && (await this.#hasBatch()))
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

/** Most relays that are tried in one turn; those that the chain refuses take no slot. */
const triedMax = 8

/**
 * Runs one turn of relays that are sent singly: signers with code, permits, and everything that a transaction did not
 * carry before. Each is simulated on the chain by itself, and a failure postpones only that relay. Those that the chain
 * accepts are sent in the order of the turn, one of each share owner and purpose while there are free slots; the others keep their place in front. A signer
 * has one of them in flight at a time, because a trial does not see what the others will change. Returns whether anything was tried.
 */
async function sendSingly(parts: RelayerParts, network: Network): Promise<boolean> {
  const { ctx } = parts
  const { lanes, settlerAddress } = ctx
  const { single: open } = await lanes.openCounts(ctx.db, network, settlerAddress)
  const free = lanes.slots.single - open
  if (free <= 0) return false
  const busy = open === 0 ? [] : await listSignersInFlight(ctx.db, network.name, settlerAddress)
  const wanted = { slot: 'single', most: triedMax, open: open / lanes.slots.single, busy } as const
  const turn = await selectBatch(parts, network, wanted)
  const { selected } = turn
  if (selected.length === 0) {
    await endTurn(parts, turn, [])
    return false
  }
  await lanes.prepare(network, settlerAddress)
  const tried = await tryEach(parts, network, selected)
  const sent = oneOfEach(
    tried.filter(({ trial }) => trial === 'taken'),
    ({ selected: { owner } }) => owner,
  ).slice(0, free)
  const served = tried.filter((one) => one.trial !== 'taken' || sent.includes(one)).map(({ selected: relay }) => relay)
  await endTrials(
    parts,
    tried.flatMap(({ relay, trial }) => (relay === undefined || trial === undefined ? [] : [{ relay, trial }])),
  )
  for (const { selected } of sent) await planOne(parts, network, selected)
  await endTurn(parts, turn, served)
  return true
}

/** Simulates each relay by itself, without a result for those that do not wait any more. */
async function tryEach(parts: RelayerParts, network: Network, selected: readonly SelectedRelay[]) {
  const ids = selected.map(({ relayId }) => relayId)
  const waiting = await listWaiting(parts.ctx.db, ids)
  return Promise.all(
    selected.map(async (one) => {
      const relay = waiting.find(({ id }) => id === one.relayId)
      return { selected: one, relay, trial: relay === undefined ? undefined : await tryOne(parts, network, relay) }
    }),
  )
}

type Tried = { readonly relay: Relay; readonly trial: Trial | 'unknown' }

function tryOne({ ctx }: RelayerParts, network: Network, relay: Relay): Promise<Tried['trial']> {
  return tryAlone(ctx.chains.on(network), relay.payload, ctx.settlerAddress).catch((error: unknown) => {
    ctx.log.warn({ err: error, network: network.name, relayId: String(relay.id) }, 'a relay could not be tried')
    return 'unknown' as const
  })
}

/** Ends or postpones the relays that the chain refused, by the results of their trials. */
async function endTrials(parts: RelayerParts, tried: readonly Tried[]): Promise<void> {
  const { ctx, timings } = parts
  const refusals = tried.flatMap(({ relay, trial }) => (typeof trial === 'string' ? [] : [{ relay, fault: trial }]))
  const idsOf = (trial: Tried['trial']) => tried.filter((one) => one.trial === trial).map(({ relay }) => relay.id)
  await conclude(parts, refusals.filter(endsNow(parts)))
  await setToCheck(ctx.db, idsOf('used'), timings.backoff)
  const waiting = refusals.filter((one) => !endsNow(parts)(one)).map(({ relay }) => relay.id)
  await postpone(ctx.db, [...idsOf('unknown'), ...waiting], timings.backoff)
}

function endsNow(parts: RelayerParts) {
  return ({ relay }: FailedRelay): boolean => purposeOf(parts, relay.purpose).refusal === 'fail'
}

/** Plans the transaction of one relay; a failure postpones only that relay. */
async function planOne(parts: RelayerParts, network: Network, { relayId }: SelectedRelay): Promise<void> {
  const { ctx, timings } = parts
  const planning = ctx.db.tx(
    async (tx) => {
      const { sent, refused } = await admit(parts, tx, await lockWaiting(tx, [relayId]))
      if (sent.length > 0) await planTransaction(parts, tx, network, { slot: 'single', relays: sent })
      return refused
    },
    { readsByKeys: true },
  )
  const refused = await planning.catch(async (error: unknown) => {
    ctx.log.error({ err: error, network: network.name, relayId: String(relayId) }, 'a relay could not be planned')
    await postpone(ctx.db, [relayId], timings.backoff)
    return []
  })
  await conclude(parts, refused)
}

/** Most nonces in one query to a quorum. */
const checkedMax = 500
/** Most attempts of a relay that the chain would accept and whose transactions did not carry it. */
const attemptsMax = 3

/**
 * Reads the chain for relays that a transaction did not carry, that have expired, or that somebody else may have sent.
 * A quorum reports each nonce's state at depth, and exactly the relays with such a report are ended. Every relay was
 * postponed before, so that one without a report blocks no others. Searches for the transactions of used nonces may
 * take long, so they are passed to `detach` and continue after the return. Returns whether there may be more.
 */
async function checkRelays(parts: RelayerParts, network: Network, detach: Detach): Promise<boolean> {
  const { ctx, timings, checkCursors: cursors } = parts
  const rows = await takeChecks(ctx.db, network.name, { most: checkedMax, cursors, ...timings.backoff })
  if (rows.length === 0) return false
  const chain = ctx.chains.on(network)
  const states = await nonceStates(
    chain,
    rows.map(({ payload }) => payload),
  )
  const inState = (state: string) => rows.filter((_, index) => states[index] === state)
  const [open, expired, used] = [inState('open'), inState('expired'), inState('used')]
  await release(parts, open)
  const over = await expiredForGood(parts, network, expired.filter(isUnended))
  await conclude(parts, [...exhausted(parts, open), ...over.map(asExpired)])
  await watchOn(
    ctx.db,
    open.filter(isStillWatched).map(({ id }) => id),
  )
  await stopChecks(
    ctx.db,
    expired.filter((row) => !isUnended(row)).map(({ id }) => id),
  )
  const owned = await withShareOwners(ctx.db, used)
  detach(parts.search(network.name, owned, (relay) => searchUse(parts, network, relay), detach.stopping))
  return rows.length === checkedMax
}

/** Returns those that no reorganization can make valid again, where their purpose waits for that; the others are checked again later. */
async function expiredForGood(
  parts: RelayerParts,
  network: Network,
  expired: readonly CheckRow[],
): Promise<readonly CheckRow[]> {
  const isLater = ({ purpose }: CheckRow) => purposeOf(parts, purpose).expiry === 'final'
  const later = expired.filter(isLater)
  const payloads = later.map(({ payload }) => payload)
  const states = await nonceStates(parts.ctx.chains.on(network), payloads, network.depositFinality)
  return [...expired.filter((row) => !isLater(row)), ...later.filter((_, index) => states[index] === 'expired')]
}

/** Returns the relays that came back from a transaction and were sent too often, or used more than their gas grant. */
function exhausted(parts: RelayerParts, open: readonly CheckRow[]): Conclusion[] {
  return open
    .filter((row) => isReturned(row) && row.attempts >= attemptsMax && purposeOf(parts, row.purpose).refusal === 'fail')
    .map((relay) => ({ relay, fault: faultOf(relay.payload, 'notCarried') }))
}

/** Makes relays that came back from a transaction due again: their nonces are unused at depth. */
async function release({ ctx }: RelayerParts, open: readonly CheckRow[]): Promise<void> {
  const again = open.filter((row) => isReturned(row) && row.attempts < attemptsMax)
  if (again.length > 0)
    await releaseRelays(
      ctx.db,
      again.map(({ id }) => id),
    )
}

function isReturned({ state, mayBeSent }: CheckRow): boolean {
  return state === 'waiting' && !mayBeSent
}

function isUnended({ state }: CheckRow): boolean {
  return state === 'waiting' || state === 'withdrawn' || state === 'watched'
}

/** Whether the relay ended without money, and anybody who has its signature can still move the money. */
function isStillWatched({ state, isPast }: CheckRow): boolean {
  return (state === 'failed' || state === 'withdrawn') && !isPast
}

function asExpired(relay: CheckRow): Conclusion {
  return { relay, fault: faultOf(relay.payload, 'expired') }
}

/** Does not reject: a search that failed is repeated by the relay's back-off. */
async function searchUse(parts: RelayerParts, network: Network, relay: CheckRow): Promise<void> {
  const { ctx } = parts
  try {
    const search = { since: relay.createdAt }
    const use = await findUse({ db: ctx.db, chain: ctx.chains.on(network) }, relay.payload, search)
    if (use.outcome === 'settled') {
      const { transactionHash, block } = use
      await conclude(parts, [{ relay, transactionHash, block, wei: 0n }])
    }
    if (use.outcome !== 'lost') return
    if (isUnended(relay)) await conclude(parts, [{ relay, fault: use.fault }])
    else await stopChecks(ctx.db, [relay.id])
  } catch (error) {
    ctx.log.warn({ err: error, network: network.name, relayId: String(relay.id) }, 'the use of a nonce was not found')
  }
}
