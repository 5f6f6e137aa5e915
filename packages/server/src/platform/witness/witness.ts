import type { Clock } from '../clock.ts'
import { instantOf } from '../clock.ts'
import type { Db, Queryable } from '../db/db.ts'
import { failPlatform } from '../errors.ts'
import type { Log } from '../log.ts'
import type { Random } from '../random.ts'
import { within } from '../within.ts'
import { atMostEvery } from './at-most-every.ts'
import { advanceState, findState, insertState, type Mark, type WitnessState } from './store.ts'

/**
 * Small named marks outside the database, out of reach of its restores. Any number of processes write there concurrently. Failures of the
 * storage are thrown.
 */
export interface Marks {
  /** The names of a deployment's marks, in any order. */
  list(deployment: string): Promise<readonly string[]>
  /** Durable when it resolves. `taken`: a mark of that name already exists. */
  create(deployment: string, name: string): Promise<'created' | 'taken'>
  remove(deployment: string, names: readonly string[]): Promise<void>
}

/**
 * `current`: the database has everything that was done. `behind`: it is an earlier copy, and `purser admin restored` has not run.
 * `unknown`: the marks cannot be read at the moment.
 */
type WitnessStatus = 'current' | 'behind' | 'unknown'

/**
 * Prevents a restored or promoted database from repeating what its predecessor did. Before a commit takes effect outside (an address is
 * returned, signed bytes are sent), the database's counter is advanced and marked outside; a database whose counter is below the newest
 * mark has lost something that took effect.
 */
export interface Witness {
  /** Throws `service-unavailable` unless the database is current. Call it before a derivation, a signature or a plan. */
  requireCurrent(): void
  isCurrent(): boolean
  /**
   * Resolves when a mark covers everything that this process has committed; only then may it take effect outside. Concurrent calls share
   * one mark. Throws `service-unavailable` if the database is behind or no mark can be made.
   */
  cover(): Promise<void>
  /**
   * As `cover`, for a request that found its change made already. The process makes at most one mark a second for such requests, which wait for it:
   * they change nothing, so that no limit of changes counts them.
   */
  coverRepetition(): Promise<void>
  /** Compares the database of a connection with the marks, before the connection is used. Never throws, and ends also when the marks do not respond. */
  compare(connection: Queryable): Promise<void>
  /** The result of the last comparison; compares again if it was not `current`. */
  status(): Promise<WitnessStatus>
}

/** Least interval between the beginnings of marks for repetitions. */
const repetitionMs = 1_000

/** Interval at which a database that was not current is compared again, while callers request it. */
const compareAgainMs = 1_000

/**
 * Longest that one access to the marks takes, so that a storage that does not respond leads to a 503 and not to an endless wait. It is below the time
 * that a caller waits for a connection of the database, since each new connection is compared first.
 */
const marksMsMax = 7_000

export interface WitnessOptions {
  readonly marks: Marks
  readonly marksMsMax?: number
  readonly clock: Clock
  readonly log: Log
}

/** Gives a database without a name a random one. Call it after the migrations and before anything is covered. */
export function nameDeployment(db: Queryable, random: Random): Promise<void> {
  return insertState(db, Buffer.from(random.bytes(12)).toString('hex'))
}

export function nameOf({ generation, counter }: Mark): string {
  return `${String(generation).padStart(10, '0')}-${String(counter).padStart(20, '0')}`
}

/** Undefined if the name is not a mark's. */
function markOf(name: string): Mark | undefined {
  const [, generation, counter] = /^(\d{10})-(\d{20})$/.exec(name) ?? []
  return generation === undefined || counter === undefined
    ? undefined
    : { generation: Number(generation), counter: BigInt(counter) }
}

export function isBefore(left: Mark, right: Mark): boolean {
  return nameOf(left) < nameOf(right)
}

/** The newest mark of a deployment; undefined if it has none. */
export async function findNewestMark(marks: Marks, deployment: string): Promise<Mark | undefined> {
  const names = (await marks.list(deployment)).filter((name) => markOf(name) !== undefined).sort()
  return markOf(names.at(-1) ?? '')
}

const rejectUnavailable = (error: unknown): never => {
  throw failPlatform('service-unavailable', {}, error)
}

function limited(marks: Marks, ms: number): Marks {
  const inTime = <T>(work: Promise<T>): Promise<T> =>
    within(ms, work, 'the storage of the marks does not respond in time')
  return {
    list: (deployment) => inTime(marks.list(deployment)),
    create: (deployment, name) => inTime(marks.create(deployment, name)),
    remove: (deployment, names) => inTime(marks.remove(deployment, names)),
  }
}

/** A witness that compares nothing until `open` gives it the database: the pool needs it before there is a connection. */
export function createWitness(given: WitnessOptions): Witness & { open(db: Db): void } {
  const { clock, log } = given
  const marks = limited(given.marks, given.marksMsMax ?? marksMsMax)
  let db: Db | undefined
  let status: WitnessStatus = 'unknown'
  let comparedAt = instantOf(0)
  let isFirstMarked = false
  let running: Promise<void> = Promise.resolve()
  let next: Promise<void> | undefined

  const conclude = (found: WitnessStatus, facts: object = {}): WitnessStatus => {
    if (found !== status && found === 'behind')
      log.error(facts, 'the database lacks changes that took effect; run purser admin restored')
    if (found !== status && status === 'behind' && found === 'current') log.info(facts, 'the database is current again')
    status = found
    return found
  }

  const compare = async (connection: Queryable): Promise<void> => {
    comparedAt = clock.now()
    try {
      conclude(...(await compareWith(marks, connection)))
    } catch (error) {
      log.error({ err: error }, 'the marks of the witness cannot be read; nothing is derived, signed or sent')
      if (status !== 'behind') status = 'unknown'
    }
  }

  const compareAgain = async (): Promise<void> => {
    if (status === 'current' || db === undefined) return
    if (clock.now().getTime() - comparedAt.getTime() >= compareAgainMs) await compare(db)
  }

  const requireCurrent = (): void => {
    if (status === 'current') return
    void compareAgain()
    throw failPlatform('service-unavailable', {}, new Error(`the database is ${status}: purser admin restored`))
  }

  const advance = async (): Promise<void> => {
    await compareAgain()
    requireCurrent()
    if (db === undefined) throw new Error('the witness has no database')
    if (!isFirstMarked) await markFirst(marks, db).catch(rejectUnavailable)
    isFirstMarked = true
    const state = await advanceState(db)
    const found = await mark({ marks, log }, db, state).catch(rejectUnavailable)
    if (found !== 'behind') return
    conclude('behind', { generation: state.generation, counter: state.counter.toString() })
    requireCurrent()
  }

  const cover = (): Promise<void> => {
    next ??= running
      // Its own callers got the error.
      .catch(() => undefined)
      .then(() => {
        next = undefined
        running = advance()
        return running
      })
    return next
  }

  return {
    open(opened) {
      db = opened
    },
    requireCurrent,
    isCurrent() {
      if (status !== 'current') void compareAgain()
      return status === 'current'
    },
    cover,
    coverRepetition: atMostEvery(cover, repetitionMs),
    compare,
    async status() {
      await compareAgain()
      return status
    },
  }
}

/**
 * Marks are read after the database's counter, so that one which another process makes meanwhile may be newer: then the counter is read
 * once more, and includes that mark by then, unless it was lost.
 */
async function compareWith(marks: Marks, connection: Queryable): Promise<[WitnessStatus, object]> {
  const state = await findState(connection)
  if (state === undefined) return ['current', {}]
  const newest = await findNewestMark(marks, state.deployment)
  const facts = { database: nameOf(state), mark: newest === undefined ? 'none' : nameOf(newest) }
  if (newest === undefined) return [state.generation === 0 && state.counter === 0n ? 'current' : 'behind', facts]
  if (!isBefore(state, newest)) return ['current', facts]
  const again = (await findState(connection)) ?? state
  return [isBefore(again, newest) ? 'behind' : 'current', facts]
}

/**
 * Marks a deployment that has never advanced its counter. A process that is killed between its first advance and its first mark then leaves a
 * mark behind: no mark at all means that the marks were lost.
 */
async function markFirst(marks: Marks, db: Queryable): Promise<void> {
  const state = await findState(db)
  if (state?.counter === 0n) await marks.create(state.deployment, nameOf(state))
}

/**
 * Makes the mark of a state. `behind` if another copy of the database made it, or if the database lacks a newer one. Older marks are
 * removed, since only the newest matters.
 */
async function mark(
  { marks, log }: Pick<WitnessOptions, 'marks' | 'log'>,
  db: Queryable,
  state: WitnessState,
): Promise<WitnessStatus> {
  const own = nameOf(state)
  if ((await marks.create(state.deployment, own)) === 'taken') return 'behind'
  const names = (await marks.list(state.deployment)).filter((name) => markOf(name) !== undefined)
  const newest = names.reduce((left, right) => (left > right ? left : right), own)
  const older = names.filter((name) => name < newest)
  await marks.remove(state.deployment, older).catch((error: unknown) => {
    log.warn({ err: error }, 'old marks of the witness cannot be removed')
  })
  if (newest === own) return 'current'
  // Another process made it meanwhile, or it is from changes that this database lost.
  const now = (await findState(db)) ?? state
  return nameOf(now) < newest ? 'behind' : 'current'
}
