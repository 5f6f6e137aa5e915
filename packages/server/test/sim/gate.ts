import { createHash } from 'node:crypto'
import type { Db, Queryable, Sql } from '../../src/platform/db/db.ts'
import { Death } from '../mortal.ts'
import type { Chance } from './chance.ts'

/** One process. Its work is cut into steps, and it can die at each. */
export interface Life {
  readonly name: string
  isDead: boolean
}

interface Waiting {
  readonly life: Life
  /** What the step does: the text of a statement, or the calls to a node. */
  readonly what: string
  readonly go: () => void
}

/** A step that has ended, whose caller waits for its result. */
interface Ended {
  readonly place: number
  readonly goOn: () => void
}

interface Sleeping {
  readonly untilMs: number
  readonly wake: () => void
}

/** Event loop turns after which the follow-up of a step is queued for its own turn. */
const quietTurns = 12

/** Idle checks after which time passes for those who sleep. */
const idleMax = 3

/** A transaction waits for its next turn for as long as the others need, whatever the machine's load. */
const idleMsMax = 3_600_000

/** The interval of the check whether running statements wait for a lock. */
const lookMs = 6

/**
 * Runs the steps of all processes one after the other, in random order. A step is a statement, the beginning or the end
 * of a transaction, a call to a node, or a use of a key. Callers of steps that end together, since a lock was released, go on one after the other
 * in the order in which the steps began. So a seed repeats its history on a machine with any load.
 */
export class Gate {
  readonly #chance: Chance
  readonly #waiting: Waiting[] = []
  #sleeping: Sleeping[] = []
  #ended: Ended[] = []
  #elapsedMs = 0
  #running = 0
  /** How many of the running steps waited for a lock at the last check. */
  #locked = 0
  /** Resolves when a running step has ended. */
  #left = Promise.withResolvers<void>()
  /** How many of a thousand steps end with the process's death. */
  deaths = 0
  steps = 0
  /** Makes so many milliseconds pass; set by the history whose clock it is. */
  passTime: (ms: number) => Promise<void> = () => Promise.resolve()

  readonly #history = createHash('sha256')
  readonly #countLocked: () => Promise<number>
  readonly #between: () => void

  /** `countLocked`: how many statements wait for a lock now. `between` is called before each step. */
  constructor(chance: Chance, countLocked: () => Promise<number>, between: () => void) {
    this.#chance = chance
    this.#countLocked = countLocked
    this.#between = between
  }

  /** Runs a step of a process, which may die before and after it. */
  async step<T>(life: Life, what: string, doing: () => Promise<T>): Promise<T> {
    await this.turn(life, what)
    const result = await doing().finally(this.begin())
    if (life.isDead) throw new Death(life.name)
    return result
  }

  /** Waits until it is this process's turn. */
  turn(life: Life, what: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const go = (): void => (life.isDead ? reject(new Death(life.name)) : resolve())
      this.#waiting.push({ life, what, go })
    })
  }

  /** Begins a step. The returned function ends it, and resolves when its caller may go on. */
  begin(): () => Promise<void> {
    this.#running += 1
    this.steps += 1
    const place = this.steps
    return () => {
      this.#running -= 1
      this.#left.resolve()
      this.#left = Promise.withResolvers()
      return new Promise((goOn) => this.#ended.push({ place, goOn }))
    }
  }

  /** Adds to the history something that happened. */
  note(what: string): void {
    this.#history.update(`${what}\n`)
  }

  /** A hash of all that has happened: two histories with the same hash are the same. */
  get history(): string {
    return this.#history.copy().digest('hex').slice(0, 16)
  }

  /** Waits by the history's clock, which moves on when everything else waits too. */
  sleep(life: Life, ms: number): Promise<void> {
    const woken = Promise.withResolvers<void>()
    this.#sleeping.push({ untilMs: this.#elapsedMs + ms, wake: woken.resolve })
    return woken.promise.then(() => this.turn(life, 'wake'))
  }

  async #wakeNext(): Promise<void> {
    const untilMs = Math.min(...this.#sleeping.map((one) => one.untilMs))
    await this.passTime(untilMs - this.#elapsedMs)
    this.#elapsedMs = untilMs
    for (const { wake } of this.#sleeping.filter((one) => one.untilMs === untilMs)) wake()
    this.#sleeping = this.#sleeping.filter((one) => one.untilMs !== untilMs)
  }

  /** Gives turns until all of the work is done. */
  async drain(work: readonly Promise<unknown>[]): Promise<void> {
    let isDone = false
    void Promise.allSettled(work).then(() => {
      isDone = true
    })
    for (let idle = 0; !isDone; ) {
      await this.#quiet()
      if (isDone) return
      const [next] = this.#waiting.length === 0 ? [] : this.#waiting.splice(this.#chance.below(this.#waiting.length), 1)
      idle = next === undefined ? idle + 1 : 0
      if (idle > 20_000) throw new Error('the simulation is stuck')
      if (idle > idleMax && this.#sleeping.length > 0) await this.#wakeNext()
      if (next === undefined) continue
      this.#between()
      const isKilled = this.#chance.happens(this.deaths / 1_000)
      const isBefore = this.#chance.happens(0.5)
      this.note(`${next.life.name}: ${next.what}${isKilled ? ` and dies ${isBefore ? 'before' : 'after'} it` : ''}`)
      if (isKilled && isBefore) next.life.isDead = true
      next.go()
      if (isKilled && !isBefore) next.life.isDead = true
    }
  }

  /** Waits until every running step waits for a lock, and the follow-ups of all steps that ended are queued. */
  async #quiet(): Promise<void> {
    await followUps()
    for (;;) {
      while (!(await this.#areLocked()));
      const ended = this.#ended.toSorted((one, other) => one.place - other.place)
      if (ended.length === 0) return
      this.#ended = []
      for (const { goOn } of ended) {
        goOn()
        await followUps()
      }
    }
  }

  /** Whether every running step waits for a lock, and so none of them can end or begin to wait meanwhile. */
  async #areLocked(): Promise<boolean> {
    if (this.#running > this.#locked) await this.#wait()
    const running = this.#running
    this.#locked = running === 0 ? 0 : await this.#countLocked()
    return this.#running === running && this.#locked === running
  }

  /** Waits until a running step has ended, or for a moment. */
  async #wait(): Promise<void> {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, lookMs)
    })
    await Promise.race([this.#left.promise, late])
    clearTimeout(timer)
  }
}

async function followUps(): Promise<void> {
  for (let turns = 0; turns < quietTurns; turns += 1) await new Promise((resolve) => setImmediate(resolve))
}

/** A database whose every statement, beginning and end of a transaction is a step. */
export function gatedDb(db: Db, gate: Gate, life: Life): Db {
  const step: Step = (what, doing) => gate.step(life, what, doing)
  return {
    ...db,
    ...gatedQueries(db, step),
    async tx(work, options) {
      await gate.turn(life, 'begin')
      let end = gate.begin()
      const result = await db
        .tx(
          async (tx) => {
            await end()
            try {
              const worked = await work({ ...tx, ...gatedQueries(tx, inOrder(step)) })
              await gate.turn(life, 'commit')
              return worked
            } finally {
              end = gate.begin()
            }
          },
          { ...options, idleMsMax },
        )
        .finally(() => end())
      if (life.isDead) throw new Death(life.name)
      return result
    },
  }
}

/** Runs a step of a process; `what` is its label. */
export type Step = <T>(what: string, doing: () => Promise<T>) => Promise<T>

/** Statements of one transaction that were sent together are steps one after the other, as at the server. */
function inOrder(step: Step): Step {
  let last: Promise<unknown> = Promise.resolve()
  return (what, doing) => {
    const next = last.then(() => step(what, doing))
    last = next.catch(() => undefined)
    return next
  }
}

function gatedQueries(on: Queryable, step: Step): Queryable {
  return {
    one: (row, statement: Sql) => step(statement.text, () => on.one(row, statement)),
    maybeOne: (row, statement: Sql) => step(statement.text, () => on.maybeOne(row, statement)),
    async many(row, statement: Sql) {
      const rows = await step(statement.text, () => on.many(row, statement))
      return isOrdered(statement.text) ? rows : rows.toSorted((one, other) => (textOf(one) < textOf(other) ? -1 : 1))
    },
    run: (statement: Sql) => step(statement.text, () => on.run(statement)),
  }
}

/** Whether a statement states the order of its rows. Where it does not, PostgreSQL returns them as they happen to lie on its pages. */
function isOrdered(text: string): boolean {
  let own = text
  for (let last = ''; last !== own; ) {
    last = own
    own = own.replace(/\([^()]*\)/g, '')
  }
  return own.includes('order by')
}

function textOf(row: unknown): string {
  return JSON.stringify(row, (_, value: unknown) => (typeof value === 'bigint' ? value.toString() : value))
}
