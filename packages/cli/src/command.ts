/** What commands use of the outside beside files: nothing of it is reached for in any other way. */
export interface Outside {
  readonly fetch: typeof globalThis.fetch
}

/** What a command was asked: its positional arguments in order, and its options by name. */
export interface Asked {
  readonly positionals: readonly string[]
  readonly options: Readonly<Record<string, string | undefined>>
}

/**
 * How a command ended: 0 done and good, 1 done and bad, 2 not done (not understood, or something that it needs could not be had).
 * Both forms say the same, one for people and one for programs; whatever stands in them is made printable when it is printed.
 */
export interface Outcome {
  readonly exitCode: 0 | 1 | 2
  readonly lines: readonly string[]
  readonly json: unknown
}

/** An option that takes a value: how help writes the value, and what it is for. */
export interface Option {
  readonly value: string
  readonly about: string
}

/** One command as data. `name` is the operation's id with a space for the dot (`verify`, `events resend`). */
export interface Command {
  readonly name: string
  readonly summary: string
  /** Each positional argument, all of them required. */
  readonly positionals: readonly string[]
  readonly options: Readonly<Record<string, Option>>
  /** What else help says: when it exits how, and examples. */
  readonly notes: readonly string[]
  readonly run: (asked: Asked, outside: Outside) => Promise<Outcome>
}

/** What a command throws when it cannot do what was asked: the run ends with 2 and this sentence. */
export class CannotDo extends Error {}
