import { parseArgs } from 'node:util'
import { type Asked, CannotDo, type Command, type Outside } from './command.ts'
import { commands, elsewhere } from './commands.ts'
import { type Format, failed, formats, type Printed, printed, printOutcome, usage, usageOf } from './print.ts'
import { version } from './version.ts'

/** Runs `purser <args>`. Throws nothing: an error that nobody expected ends with 2, since 1 would speak against a proof. */
export async function run(args: readonly string[], outside: Outside): Promise<Printed> {
  const [first] = args
  if (first === undefined) return failed(2, usage(commands))
  if (first === '--help' || first === '-h' || first === 'help') return printed(0, usage(commands))
  if (first === '--version' || first === '-v') return printed(0, [version()])
  const command = commandOf(args)
  if (command !== undefined) return runCommand(command, args.slice(wordsOf(command).length), outside)
  const hint = Object.hasOwn(elsewhere, first) ? elsewhere[first] : undefined
  return failed(2, hint === undefined ? [`There is no command ${first}.`, '', ...usage(commands)] : [hint])
}

function commandOf(args: readonly string[]): Command | undefined {
  return commands.find((command) => wordsOf(command).every((word, index) => args[index] === word))
}

function wordsOf({ name }: Command): readonly string[] {
  return name.split(' ')
}

async function runCommand(command: Command, args: readonly string[], outside: Outside): Promise<Printed> {
  const read = readArguments(command, args)
  if (read === 'help') return printed(0, usageOf(command))
  if (typeof read === 'string') return failed(2, [read, '', ...usageOf(command)])
  try {
    return printOutcome(await command.run(read.asked, outside), read.format)
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    return failed(2, [error instanceof CannotDo ? reason : `purser could not finish: ${reason}`])
  }
}

type Read = { readonly asked: Asked; readonly format: Format }

/** What was asked, or a sentence about what is wrong with it; `help` where that was asked. */
function readArguments(command: Command, args: readonly string[]): Read | string {
  const named = Object.fromEntries(Object.keys(command.options).map((name) => [name, { type: 'string' } as const]))
  const options = { ...named, help: { type: 'boolean', short: 'h' }, format: { type: 'string' } } as const
  try {
    const { values, positionals } = parseArgs({ args: [...args], options, allowPositionals: true, strict: true })
    if (values.help === true) return 'help'
    const format = formats.find((known) => known === (values.format ?? 'text'))
    if (format === undefined) return '--format is text or json.'
    if (positionals.length !== command.positionals.length) {
      return `purser ${command.name} takes ${command.positionals.join(' ') || 'no argument'}.`
    }
    return { asked: { positionals, options: textsOf(values) }, format }
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

function textsOf(values: Readonly<Record<string, unknown>>): Asked['options'] {
  const texts = Object.entries(values).filter((entry): entry is [string, string] => typeof entry[1] === 'string')
  return Object.fromEntries(texts)
}
