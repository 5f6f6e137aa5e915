import type { Db, Queryable, Sql, Tx } from '../../src/platform/db/db.ts'
import { Death } from '../mortal.ts'
import type { Chance } from './chance.ts'

/** One process. Its work is cut into steps, and it can die at each. */
export interface Life {
  readonly name: string
  isDead: boolean
}

interface Waiting {
  readonly life: Life
  readonly go: () => void
}

interface Sleeping {
  readonly untilMs: number
  readonly wake: () => void
}

/** Event loop turns after which the follow-up of a step is queued for its own turn. */
const quietTurns = 12

/** Idle checks after which time passes for those who sleep. */
const idleMax = 3

/** The interval of the check whether running statements wait for a lock. */
const lookMs = 6

/**
 * Runs the steps of all processes one after the other, in random order. A step is a statement, the beginning or the end
 * of a transaction, or a call to a node.
 */
export class Gate {
  readonly #chance: Chance
  readonly #waiting: Waiting[] = []
  #sleeping: Sleeping[] = []
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

  readonly #countLocked: () => Promise<number>
  readonly #between: () => void

  /** `countLocked`: how many statements wait for a lock now. `between` is called before each step. */
  constructor(chance: Chance, countLocked: () => Promise<number>, between: () => void) {
    this.#chance = chance
    this.#countLocked = countLocked
    this.#between = between
  }

  /** Runs a step of a process, which may die before and after it. */
  async step<T>(life: Life, doing: () => Promise<T>): Promise<T> {
    await this.turn(life)
    return this.during(life, doing)
  }

  /** Waits until it is this process's turn. */
  turn(life: Life): Promise<void> {
    return new Promise((resolve, reject) => {
      const go = (): void => (life.isDead ? reject(new Death(life.name)) : resolve())
      this.#waiting.push({ life, go })
    })
  }

  /** Waits by the history's clock, which moves on when everything else waits too. */
  sleep(life: Life, ms: number): Promise<void> {
    const woken = Promise.withResolvers<void>()
    this.#sleeping.push({ untilMs: this.#elapsedMs + ms, wake: woken.resolve })
    return woken.promise.then(() => this.turn(life))
  }

  async #wakeNext(): Promise<void> {
    const untilMs = Math.min(...this.#sleeping.map((one) => one.untilMs))
    await this.passTime(untilMs - this.#elapsedMs)
    this.#elapsedMs = untilMs
    for (const { wake } of this.#sleeping.filter((one) => one.untilMs === untilMs)) wake()
    this.#sleeping = this.#sleeping.filter((one) => one.untilMs !== untilMs)
  }

  async during<T>(life: Life, doing: () => Promise<T>): Promise<T> {
    this.enter()
    try {
      const result = await doing()
      if (life.isDead) throw new Death(life.name)
      return result
    } finally {
      this.leave()
    }
  }

  enter(): void {
    this.#running += 1
    this.steps += 1
  }

  leave(): void {
    this.#running -= 1
    this.#left.resolve()
    this.#left = Promise.withResolvers()
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
      if (isKilled && isBefore) next.life.isDead = true
      next.go()
      if (isKilled && !isBefore) next.life.isDead = true
    }
  }

  /** Waits until every running step waits for a lock, and the follow-up of the last step is queued. */
  async #quiet(): Promise<void> {
    for (let turns = 0; turns < quietTurns; turns += 1) await new Promise((resolve) => setImmediate(resolve))
    for (let locked = 0; this.#running > locked; ) {
      if (this.#running > this.#locked) await this.#wait()
      locked = this.#running === 0 ? 0 : await this.#countLocked()
      this.#locked = locked
    }
    for (let turns = 0; turns < quietTurns; turns += 1) await new Promise((resolve) => setImmediate(resolve))
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

/** A database whose every statement, beginning and end of a transaction is a step. */
export function gatedDb(db: Db, gate: Gate, life: Life): Db {
  const step = <T>(doing: () => Promise<T>): Promise<T> => gate.step(life, doing)
  return {
    ...db,
    ...gatedQueries(db, step),
    async tx(work, options) {
      await gate.turn(life)
      gate.enter()
      try {
        const result = await db.tx(async (tx) => {
          gate.leave()
          try {
            const worked = await work(gatedTx(tx, step))
            await gate.turn(life)
            return worked
          } finally {
            gate.enter()
          }
        }, options)
        if (life.isDead) throw new Death(life.name)
        return result
      } finally {
        gate.leave()
      }
    },
  }
}

function gatedTx(tx: Tx, step: <T>(doing: () => Promise<T>) => Promise<T>): Tx {
  return { ...tx, ...gatedQueries(tx, step) }
}

function gatedQueries(on: Queryable, step: <T>(doing: () => Promise<T>) => Promise<T>): Queryable {
  return {
    one: (row, statement: Sql) => step(() => on.one(row, statement)),
    maybeOne: (row, statement: Sql) => step(() => on.maybeOne(row, statement)),
    many: (row, statement: Sql) => step(() => on.many(row, statement)),
    run: (statement: Sql) => step(() => on.run(statement)),
  }
}
