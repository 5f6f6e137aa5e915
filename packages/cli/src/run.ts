import { type ParseArgsConfig, parseArgs } from 'node:util'
import { PurserError } from '@purser/sdk'
import { type Asked, CannotDo, type Command, type Outcome, type Outside, type Told } from './command.ts'
import { commands, elsewhere } from './commands.ts'
import { failed, formats, type Printed, printed, printOutcome, printTold, usage, usageOf } from './print.ts'
import { refusalOf } from './refusal.ts'
import { version } from './version.ts'

/** Runs `purser <args>`. Throws nothing: an error that nobody expected ends with 2, since 1 would speak against a proof. */
export async function run(args: readonly string[], outside: Outside): Promise<Printed> {
  const [first, ...rest] = args
  if (first === undefined) return failed(2, usage(commands))
  if (first === '--help' || first === '-h') return printed(0, usage(commands))
  if (first === 'help') return help(rest)
  if (first === '--version' || first === '-v') return printed(0, [version()])
  const command = commandOf(args)
  if (command !== undefined) return runCommand(command, args.slice(wordsOf(command).length), outside)
  return unknown(args)
}

function help(args: readonly string[]): Printed {
  const command = commandOf(args)
  if (command !== undefined) return printed(0, usageOf(command))
  return args.length === 0 ? printed(0, usage(commands)) : unknown(args)
}

function unknown([first = '', ...rest]: readonly string[]): Printed {
  const hint = Object.hasOwn(elsewhere, first) ? elsewhere[first] : undefined
  if (hint !== undefined) return failed(2, [hint])
  const siblings = commands.filter((command) => wordsOf(command)[0] === first)
  const name = siblings.length > 0 ? [first, ...rest.slice(0, 1)].join(' ') : first
  return failed(2, [`There is no command ${name}.`, '', ...usage(siblings.length > 0 ? siblings : commands)])
}

function commandOf(args: readonly string[]): Command | undefined {
  return commands.find((command) => wordsOf(command).every((word, index) => args[index] === word))
}

function wordsOf({ name }: Command): readonly string[] {
  return name.split(' ')
}

async function runCommand(command: Command, args: readonly string[], outside: Outside): Promise<Printed> {
  const asked = readArguments(command, args)
  if (asked === 'help') return printed(0, usageOf(command))
  if (typeof asked === 'string') return failed(2, [asked, '', ...usageOf(command)])
  const { format } = asked
  let hasTold = false
  const tell = (told: Told): void => {
    hasTold = true
    outside.print(printTold(told, format))
  }
  const outcome = await command.run(asked, outside, tell).catch(badEnd)
  // What goes on in lines of JSON ends in one too.
  return hasTold && format === 'json'
    ? printed(outcome.exitCode, [JSON.stringify(outcome.json)])
    : printOutcome(outcome, format)
}

function badEnd(error: unknown): Outcome {
  return error instanceof PurserError ? refusalOf(error) : notDone(error)
}

function notDone(error: unknown): Outcome {
  const reason = error instanceof Error ? error.message : String(error)
  const detail = error instanceof CannotDo ? reason : `purser could not finish: ${reason}`
  return { exitCode: 2, lines: [detail], json: { error: { detail } } }
}

/** What was asked, or a sentence about what is wrong with it; `help` where that was asked. */
function readArguments(command: Command, args: readonly string[]): Asked | string {
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

function textsOf(values: Readonly<Record<string, unknown>>): Asked['options'] {
  const texts = Object.entries(values).filter((entry): entry is [string, string] => typeof entry[1] === 'string')
  return Object.fromEntries(texts)
}

function flagsOf(values: Readonly<Record<string, unknown>>): Asked['flags'] {
  return new Set(Object.keys(values).filter((name) => values[name] === true))
}
