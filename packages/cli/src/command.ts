export type Format = 'text' | 'json'

/**
 * The dependencies of commands on the machine: network, terminal, environment and signals. Tests replace all of it.
 * Files are accessed directly.
 */
export interface Io {
  readonly fetch: typeof globalThis.fetch
  readonly env: Readonly<Record<string, string | undefined>>
  /** Purser's directory in the user's settings. It may not exist yet. */
  readonly settingsDirectory: string
  /** Reads one line from a prompt without echo, or from a pipe. */
  readonly readSecret: (question: string) => Promise<string>
  /** Aborts on Ctrl-C or SIGTERM. A command that never calls this is ended by the signal at once. */
  readonly untilStopped: () => AbortSignal
  /** Prints at once. */
  readonly print: (text: string) => void
}

/** The parsed arguments of a command: positionals in order, options by name, and the flags that are set. */
export interface Args {
  readonly positionals: readonly string[]
  readonly options: Readonly<Record<string, string | undefined>>
  readonly flags: ReadonlySet<string>
  readonly format: Format
}

/** Output in both formats: lines for people, JSON for programs. Control characters are escaped when it is printed. */
export interface Output {
  readonly lines: readonly string[]
  readonly json: unknown
}

/**
 * The outcome of a command: 0 success, 1 a negative result (an invalid proof, or a request that the service refused), 2
 * failure (bad arguments, something that the command needs is not available, or a request whose outcome is not known), 3
 * a request that waits for the approval of a person.
 */
export interface Outcome extends Output {
  readonly exitCode: 0 | 1 | 2 | 3
}

/** An option: how help writes its value, and what it is for. Without a value it is a flag. */
export interface Option {
  readonly value?: string
  readonly about: string
}

/** A command as data, for a program whose commands use `Context` of the machine. */
export interface CommandOf<Context> {
  /** The words after the program's own: in `purser` an operation's id with a space for the dot (`verify`, `events resend`). */
  readonly name: string
  readonly summary: string
  /** Each positional argument. One in square brackets may be left out; those come last. */
  readonly positionals: readonly string[]
  readonly options: Readonly<Record<string, Option>>
  /** Further lines of help: exit codes and examples. */
  readonly notes: readonly string[]
  /**
   * Returns the fault of arguments that parsed correctly; undefined if there is none. Omit it if every parsed value is
   * valid.
   */
  readonly check?: (args: Args) => string | undefined
  /** `write` prints while the command still runs: lines, or one JSON value per line. */
  readonly run: (args: Args, context: Context, write: (output: Output) => void) => Promise<Outcome>
}

/** A command of `purser`. */
export type Command = CommandOf<Io>

/** Thrown by a command that cannot run. The program prints the message and exits with 2. */
export class CommandError extends Error {}
