import { type ParseArgsConfig, parseArgs } from 'node:util'
import {
  type Args,
  CommandError,
  type CommandOf,
  type Format,
  type Option,
  type Outcome,
  type Output,
} from './command.ts'

export { type Args, CommandError, type CommandOf, type Outcome } from './command.ts'

/** A program as data. `purser` and `purser-admin` are programs of this form; `Context` is what its commands use of the machine. */
export interface Program<Context> {
  readonly commands: readonly CommandOf<Context>[]
  /** Help for the whole program. */
  readonly usage: readonly string[]
  /** Returns the full command line of a command, such as `purser verify` or `purser admin set-plan`. */
  readonly spell: (name: string) => string
  /** Commands of another program, with a message that names it. */
  readonly elsewhere?: Readonly<Record<string, string>>
  /** The output of `--version`; undefined for a program that has no such option. */
  readonly version?: () => string
  /** The outcome of an error that a command threw; undefined for an unexpected one. */
  readonly outcomeOf: (error: unknown) => Outcome | undefined
}

/** The parts of the machine that a run uses. */
interface Machine<Context> {
  readonly context: Context
  /** Prints at once, while a command still runs. */
  readonly print: (text: string) => void
}

/** Output formats: `text` for people, `json` for programs. */
const formats = ['text', 'json'] as const

/** The output of a program, and its exit code. */
export interface Printed {
  readonly exitCode: Outcome['exitCode']
  readonly stdout: string
  readonly stderr: string
}

/** Runs a program with these arguments. Never throws: an unexpected error exits with 2, because 1 is a negative result. */
export async function runProgram<Context>(
  program: Program<Context>,
  args: readonly string[],
  machine: Machine<Context>,
): Promise<Printed> {
  const [first, ...rest] = args
  if (first === undefined) return failed(2, program.usage)
  if (first === '--help' || first === '-h') return printed(0, program.usage)
  if (first === 'help') return help(program, rest)
  const isHelpLast = args.at(-1) === '--help' || args.at(-1) === '-h'
  const command = commandOf(program, args)
  if (isHelpLast && command === undefined) return help(program, args.slice(0, -1))
  if (program.version !== undefined && (first === '--version' || first === '-v')) return printed(0, [program.version()])
  if (command === undefined) return unknown(program, args)
  return runCommand(program, { command, args: args.slice(wordsOf(command).length) }, machine)
}

function help<Context>(program: Program<Context>, args: readonly string[]): Printed {
  const command = commandOf(program, args)
  if (command !== undefined) return printed(0, usageOf(program, command))
  if (args.length === 0) return printed(0, program.usage)
  const group = commandsOf(program, args)
  return group.length > 0 ? printed(0, groupUsage(program, group)) : unknown(program, args)
}

function unknown<Context>(program: Program<Context>, [first = '', ...rest]: readonly string[]): Printed {
  const { elsewhere = {} } = program
  const hint = Object.hasOwn(elsewhere, first) ? elsewhere[first] : undefined
  if (hint !== undefined) return failed(2, [hint])
  const siblings = commandsOf(program, [first])
  const name = siblings.length > 0 ? [first, ...rest.slice(0, 1)].join(' ') : first
  const shown = siblings.length > 0 ? groupUsage(program, siblings) : program.usage
  return failed(2, [`There is no command ${name}.`, '', ...shown])
}

/** The command with the most words that the arguments begin with: `wallets master policy get`, not `wallets master`. */
function commandOf<Context>({ commands }: Program<Context>, args: readonly string[]): CommandOf<Context> | undefined {
  const meant = commands.filter((command) => wordsOf(command).every((word, index) => args[index] === word))
  return meant.toSorted((left, right) => wordsOf(right).length - wordsOf(left).length)[0]
}

/** The commands that begin with these words. */
function commandsOf<Context>({ commands }: Program<Context>, words: readonly string[]): readonly CommandOf<Context>[] {
  return commands.filter((command) => words.every((word, index) => wordsOf(command)[index] === word))
}

function wordsOf({ name }: Pick<CommandOf<never>, 'name'>): readonly string[] {
  return name.split(' ')
}

interface Call<Context> {
  readonly command: CommandOf<Context>
  readonly args: readonly string[]
}

async function runCommand<Context>(
  program: Program<Context>,
  { command, args }: Call<Context>,
  { context, print }: Machine<Context>,
): Promise<Printed> {
  const parsed = readArguments(program, command, args)
  if (parsed === 'help') return printed(0, usageOf(program, command))
  if (typeof parsed === 'string') return failed(2, [...parsed.split('\n'), '', ...usageOf(program, command)])
  const { format } = parsed
  let hasWritten = false
  const write = (output: Output): void => {
    hasWritten = true
    print(printOutput(output, format))
  }
  const outcome = await command
    .run(parsed, context, write)
    .catch((error: unknown) => program.outcomeOf(error) ?? unexpectedFailure(error))
  // A command that streams JSON lines ends with a JSON line.
  return hasWritten && format === 'json'
    ? printed(outcome.exitCode, [JSON.stringify(outcome.json)])
    : printOutcome(outcome, format)
}

function unexpectedFailure(error: unknown): Outcome {
  const reason = error instanceof Error ? error.message : String(error)
  const detail = error instanceof CommandError ? reason : `purser could not finish: ${reason}`
  return { exitCode: 2, lines: [detail], json: { error: { detail } } }
}

/** The parsed arguments, the message of a usage error, or `help` for `--help`. */
function readArguments<Context>(
  { spell }: Program<Context>,
  command: CommandOf<Context>,
  args: readonly string[],
): Args | string {
  const options: NonNullable<ParseArgsConfig['options']> = {
    help: { type: 'boolean', short: 'h' },
    format: { type: 'string' },
  }
  for (const [name, { value }] of Object.entries(command.options))
    options[name] = { type: value === undefined ? 'boolean' : 'string' }
  try {
    const { values, positionals } = parseArgs({ args: [...args], options, allowPositionals: true, strict: true })
    if (values.help === true) return 'help'
    const format = formats.find((known) => known === (values.format ?? 'text'))
    if (format === undefined) return '--format is text or json.'
    if (!fits(command.positionals, positionals))
      return `${spell(command.name)} takes ${command.positionals.join(' ') || 'no argument'}.`
    const parsed = { positionals, options: textsOf(values), flags: flagsOf(values), format }
    return command.check?.(parsed) ?? parsed
  } catch (error) {
    return usageFaultOf(error)
  }
}

/** The fault of the options in the words of Node, without its advice on values that begin with a hyphen. */
function usageFaultOf(error: unknown): string {
  const [fault = ''] = (error instanceof Error ? error.message : String(error)).split('. To specify a positional')
  if (fault === "Unknown option '--json'") return `${fault}. For JSON give --format json.`
  return fault.endsWith('.') ? fault : `${fault}.`
}

function fits(wanted: readonly string[], positionals: readonly string[]): boolean {
  const required = wanted.filter((name) => !name.startsWith('['))
  return positionals.length >= required.length && positionals.length <= wanted.length
}

function textsOf(values: Readonly<Record<string, unknown>>): Args['options'] {
  const texts = Object.entries(values).filter((entry): entry is [string, string] => typeof entry[1] === 'string')
  return Object.fromEntries(texts)
}

function flagsOf(values: Readonly<Record<string, unknown>>): Args['flags'] {
  return new Set(Object.keys(values).filter((name) => values[name] === true))
}

/** Control and format characters, line and paragraph separators, and halves of pairs: everything invisible that a terminal interprets. */
const unprintable = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu

/** Escapes unprintable characters as `\uXXXX`, so that a name in a proof cannot move the cursor or reverse the line. */
function printable(text: string): string {
  return text.replace(unprintable, (character) =>
    Array.from({ length: character.length }, (_, at) => escaped(character.charCodeAt(at))).join(''),
  )
}

/** Prints an outcome. As text, failures go to stderr; as JSON, everything goes to stdout. */
function printOutcome({ exitCode, lines, json }: Outcome, format: Format): Printed {
  if (format === 'json') return printed(exitCode, JSON.stringify(json, null, 2).split('\n'))
  return exitCode === 0 || exitCode === 3 ? printed(exitCode, lines) : failed(exitCode, lines)
}

/** Formats output of a command that still runs: lines, or one JSON value on a line of its own. */
function printOutput({ lines, json }: Output, format: Format): string {
  return textOf(format === 'json' ? [JSON.stringify(json)] : lines)
}

/** A result whose lines go to stdout. */
function printed(exitCode: Printed['exitCode'], lines: readonly string[]): Printed {
  return { exitCode, stdout: textOf(lines), stderr: '' }
}

/** A result whose lines go to stderr. */
function failed(exitCode: Printed['exitCode'], lines: readonly string[]): Printed {
  return { exitCode, stdout: '', stderr: textOf(lines) }
}

/** Help for commands that begin with the same words. */
function groupUsage<Context>({ spell }: Program<Context>, commands: readonly CommandOf<Context>[]): readonly string[] {
  return [`usage: ${spell('<command>')} [options]`, '', ...listed(commands)]
}

/** One line for each command: its name and summary. */
export function listed(commands: readonly Pick<CommandOf<never>, 'name' | 'summary'>[]): readonly string[] {
  const width = Math.max(...commands.map(({ name }) => name.length))
  return commands.map(({ name, summary }) => `  ${name.padEnd(width)}  ${summary}`)
}

/** Help for one command. */
function usageOf<Context>({ spell }: Program<Context>, command: CommandOf<Context>): readonly string[] {
  const { name, summary, positionals, options, notes } = command
  const shown = Object.entries(options).map(([option, { value, about }]) => [spelled(option, value), about] as const)
  const all = [...shown, ['--format text|json', 'for people or for programs (text when left out)'] as const]
  const width = Math.max(...all.map(([option]) => option.length))
  return [
    `usage: ${[spell(name), ...positionals].join(' ')} [options]`,
    '',
    summary,
    '',
    ...all.map(([option, about]) => `  ${option.padEnd(width)}  ${about}`),
    ...(notes.length > 0 ? ['', ...notes] : []),
  ]
}

function spelled(option: string, value: Option['value']): string {
  return value === undefined ? `--${option}` : `--${option} ${value}`
}

function textOf(lines: readonly string[]): string {
  return lines.map((line) => `${printable(line)}\n`).join('')
}

function escaped(unit: number): string {
  return `\\u${unit.toString(16).padStart(4, '0')}`
}
