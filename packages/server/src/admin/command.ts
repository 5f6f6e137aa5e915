import type { Args, Outcome as CliOutcome, CommandOf } from '@purser/cli/program'
import type { z } from 'zod'
import type { KeptDays } from '../archive/plan.ts'
import type { KeyRing } from '../custody/index.ts'
import type { Acting } from '../features/organisations/index.ts'
import type { BlobStore } from '../files/index.ts'
import type { Environment } from '../platform/ctx.ts'
import type { Pooler } from '../platform/db/db.ts'
import { plainFaults } from '../platform/fault-words.ts'
import type { Marks } from '../platform/witness/witness.ts'

/** Context of a command: the database as the operator, and the environments that the deployment serves. */
export interface Operator extends Acting {
  readonly databaseUrl: string
  readonly databasePooler: Pooler
  readonly environments: readonly Environment[]
  /** For how long rows stay in the database before `archive` may take them. */
  readonly keptDays: KeptDays | undefined
  /** Public base address of the deployment, without a trailing slash; undefined where the environment does not name it. */
  readonly baseUrl: string | undefined
  /** Opens the key-encryption keys that the environment names; undefined if it names none. */
  readonly openKeys: (() => Promise<KeyRing>) | undefined
  /** Opens the marks of the witness; undefined if the environment does not configure them. */
  readonly openMarks: (() => Promise<Marks & { close(): void }>) | undefined
  /** Opens the storage of files; undefined if the environment does not configure it. */
  readonly openBlobs: (() => Promise<{ readonly blobs: BlobStore; close(): void }>) | undefined
}

/** Result of a command: lines for people, JSON for scripts, and the exit code. A line break in a line is printed escaped, so that no name makes a line. */
export interface CommandOutcome {
  readonly lines: readonly string[]
  readonly json: unknown
  readonly exitCode: 0 | 1
}

/** The lines, or this one where there are none. */
export function linesOr(lines: readonly string[], none: string): readonly string[] {
  return lines.length === 0 ? [none] : lines
}

interface CommandSpec<S extends z.ZodType> {
  readonly name: string
  readonly summary: string
  /** Each option with its help text; any other option is refused. */
  readonly options: Readonly<Record<string, string>>
  readonly schema: S
  /** Whether it runs on a database whose migrations are missing; default false. */
  readonly takesAnyDatabase?: boolean
  readonly run: (operator: Operator, options: z.output<S>) => Promise<CommandOutcome>
}

/** Opens the database as the operator, does the work, and closes it again. */
export type AsOperator = (
  needs: { readonly takesAnyDatabase: boolean },
  work: (operator: Operator) => Promise<CommandOutcome>,
) => Promise<CliOutcome>

/** One admin command as data, with the types of its options erased; the schema keeps them. */
export type Command = CommandOf<AsOperator>

/** Declares a command; the type of its options follows from the schema. */
export function command<S extends z.ZodType>(spec: CommandSpec<S>): Command {
  const { name, summary, options, schema, takesAnyDatabase = false } = spec
  const given = (args: Args) =>
    Object.fromEntries(Object.entries(args.options).filter(([option]) => Object.hasOwn(options, option)))
  return {
    name,
    summary,
    positionals: [],
    options: Object.fromEntries(
      Object.entries(options).map(([option, about]) => [option, { value: '<value>', about }]),
    ),
    notes: [],
    check(args) {
      const faults = schema.safeParse(given(args), plainFaults).error?.issues ?? []
      return faults.length === 0
        ? undefined
        : faults.map(({ path, message }) => `--${path.join('.')}: ${message}`).join('\n')
    },
    run: (args, asOperator) =>
      asOperator({ takesAnyDatabase }, (operator) => spec.run(operator, schema.parse(given(args)))),
  }
}
