import type { Clock } from '../../src/platform/clock.ts'

/** The system clock, moved forward by what a test says: retries come days later, and a test has minutes. */
export class ShiftedClock implements Clock {
  #aheadMs = 0

  now(): Date {
    return new Date(Date.now() + this.#aheadMs)
  }

  forward(ms: number): void {
    this.#aheadMs += ms
  }
}

/** A clock that stands still until a test moves it forward. */
export class StoppedClock implements Clock {
  #nowMs = Date.now()

  now(): Date {
    return new Date(this.#nowMs)
  }

  forward(ms: number): void {
    this.#nowMs += ms
  }
}
