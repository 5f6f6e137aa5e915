import { type ParseArgsConfig, parseArgs } from 'node:util'
import { PurserError } from '@purser/sdk'
import { type Args, type Command, CommandError, type Io, type Outcome, type Output } from './command.ts'
import { commands, elsewhere, mainCommands } from './commands.ts'
import {
  failed,
  formats,
  groupUsage,
  type Printed,
  printed,
  printOutcome,
  printOutput,
  usage,
  usageOf,
} from './print.ts'
import { refusalOf } from './refusal.ts'
import { version } from './version.ts'

/** Runs `purser <args>`. Never throws: an unexpected error exits with 2, because 1 would mean that a proof is invalid. */
export async function run(args: readonly string[], io: Io): Promise<Printed> {
  const [first, ...rest] = args
  if (first === undefined) return failed(2, usage(mainCommands, commands))
  if (first === '--help' || first === '-h') return printed(0, usage(mainCommands, commands))
  if (first === 'help') return help(rest)
  const asksForHelp = args.at(-1) === '--help' || args.at(-1) === '-h'
  if (asksForHelp && commandOf(args) === undefined) return help(args.slice(0, -1))
  if (first === '--version' || first === '-v') return printed(0, [version()])
  const command = commandOf(args)
  if (command !== undefined) return runCommand(command, args.slice(wordsOf(command).length), io)
  return unknown(args)
}

function help(args: readonly string[]): Printed {
  const command = commandOf(args)
  if (command !== undefined) return printed(0, usageOf(command))
  if (args.length === 0) return printed(0, usage(mainCommands, commands))
  const group = commandsOf(args)
  return group.length > 0 ? printed(0, groupUsage(group)) : unknown(args)
}

function unknown([first = '', ...rest]: readonly string[]): Printed {
  const hint = Object.hasOwn(elsewhere, first) ? elsewhere[first] : undefined
  if (hint !== undefined) return failed(2, [hint])
  const siblings = commandsOf([first])
  const name = siblings.length > 0 ? [first, ...rest.slice(0, 1)].join(' ') : first
  const shown = siblings.length > 0 ? groupUsage(siblings) : usage(mainCommands, commands)
  return failed(2, [`There is no command ${name}.`, '', ...shown])
}

/** The command with the most words that the arguments begin with: `wallets master policy get`, not `wallets master`. */
function commandOf(args: readonly string[]): Command | undefined {
  const meant = commands.filter((command) => wordsOf(command).every((word, index) => args[index] === word))
  return meant.toSorted((left, right) => wordsOf(right).length - wordsOf(left).length)[0]
}

/** The commands that begin with these words. */
function commandsOf(words: readonly string[]): readonly Command[] {
  return commands.filter((command) => words.every((word, index) => wordsOf(command)[index] === word))
}

function wordsOf({ name }: Command): readonly string[] {
  return name.split(' ')
}

async function runCommand(command: Command, args: readonly string[], io: Io): Promise<Printed> {
  const parsed = readArguments(command, args)
  if (parsed === 'help') return printed(0, usageOf(command))
  if (typeof parsed === 'string') return failed(2, [parsed, '', ...usageOf(command)])
  const { format } = parsed
  let hasWritten = false
  const write = (output: Output): void => {
    hasWritten = true
    io.print(printOutput(output, format))
  }
  const outcome = await command.run(parsed, io, write).catch(failedOutcome)
  // A command that streams JSON lines ends with a JSON line.
  return hasWritten && format === 'json'
    ? printed(outcome.exitCode, [JSON.stringify(outcome.json)])
    : printOutcome(outcome, format)
}

function failedOutcome(error: unknown): Outcome {
  return error instanceof PurserError ? refusalOf(error) : unexpectedFailure(error)
}

function unexpectedFailure(error: unknown): Outcome {
  const reason = error instanceof Error ? error.message : String(error)
  const detail = error instanceof CommandError ? reason : `purser could not finish: ${reason}`
  return { exitCode: 2, lines: [detail], json: { error: { detail } } }
}

/** The parsed arguments, the message of a usage error, or `help` for `--help`. */
function readArguments(command: Command, args: readonly string[]): Args | string {
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
    if (!fits(command, positionals))
      return `purser ${command.name} takes ${command.positionals.join(' ') || 'no argument'}.`
    return { positionals, options: textsOf(values), flags: flagsOf(values), format }
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

function fits(command: Command, positionals: readonly string[]): boolean {
  const required = command.positionals.filter((name) => !name.startsWith('['))
  return positionals.length >= required.length && positionals.length <= command.positionals.length
}

function textsOf(values: Readonly<Record<string, unknown>>): Args['options'] {
  const texts = Object.entries(values).filter((entry): entry is [string, string] => typeof entry[1] === 'string')
  return Object.fromEntries(texts)
}

function flagsOf(values: Readonly<Record<string, unknown>>): Args['flags'] {
  return new Set(Object.keys(values).filter((name) => values[name] === true))
}
