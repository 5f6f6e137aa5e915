import type { Format } from './print.ts'

/** What commands use of the outside beside files: nothing of it is reached for in any other way. */
export interface Outside {
  readonly fetch: typeof globalThis.fetch
  readonly env: Readonly<Record<string, string | undefined>>
  /** The directory that is purser's own among the user's settings. It need not be there. */
  readonly settingsDirectory: string
  /** A secret that the person types unseen, or that is piped in; its first line. */
  readonly readSecret: (question: string) => Promise<string>
  /** Aborted when the person wants an end. Whoever never asks for it is ended at once. */
  readonly untilStopped: () => AbortSignal
  /** Prints at once. */
  readonly print: (text: string) => void
}

/** What a command was asked: its positional arguments in order, its options by name, and the flags that were set. */
export interface Asked {
  readonly positionals: readonly string[]
  readonly options: Readonly<Record<string, string | undefined>>
  readonly flags: ReadonlySet<string>
  readonly format: Format
}

/** Something in both forms: lines for people, and a value for programs. It is made printable when it is printed. */
export interface Told {
  readonly lines: readonly string[]
  readonly json: unknown
}

/**
 * How a command ended: 0 done and good, 1 done and bad (it does not hold, or the service said no), 2 not done (not understood, or
 * something that it needs could not be had).
 */
export interface Outcome extends Told {
  readonly exitCode: 0 | 1 | 2
}

/** An option: how help writes its value, and what it is for. Without a value it is a flag. */
export interface Option {
  readonly value?: string
  readonly about: string
}

/** One command as data. `name` is the operation's id with a space for the dot (`verify`, `events resend`). */
export interface Command {
  readonly name: string
  readonly summary: string
  /** Each positional argument. One in square brackets may be left out; those come last. */
  readonly positionals: readonly string[]
  readonly options: Readonly<Record<string, Option>>
  /** What else help says: when it exits how, and examples. */
  readonly notes: readonly string[]
  /** `tell` says something while the command goes on: in JSON, one value on a line. */
  readonly run: (asked: Asked, outside: Outside, tell: (told: Told) => void) => Promise<Outcome>
}

/** What a command throws when it cannot do what was asked: the run ends with 2 and this sentence. */
export class CannotDo extends Error {}
