import type { Command, Option, Outcome, Told } from './command.ts'

/** The two ways in which a command answers: for people, and for programs. */
export const formats = ['text', 'json'] as const
export type Format = (typeof formats)[number]

/** What a run prints, and how it ends. */
export interface Printed {
  readonly exitCode: Outcome['exitCode']
  readonly stdout: string
  readonly stderr: string
}

/** Control and format characters, line and paragraph separators, and halves of pairs: all that a terminal obeys and nobody sees. */
const unprintable = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu

/** The text with everything unprintable written as `\uXXXX`, so that a name in a proof can neither move the cursor nor turn the line. */
export function printable(text: string): string {
  return text.replace(unprintable, (character) =>
    Array.from({ length: character.length }, (_, at) => escaped(character.charCodeAt(at))).join(''),
  )
}

/** An outcome in the form asked for. For people, what is bad goes to stderr; a program always reads stdout. */
export function printOutcome({ exitCode, lines, json }: Outcome, format: Format): Printed {
  if (format === 'json') return printed(exitCode, JSON.stringify(json, null, 2).split('\n'))
  return exitCode === 0 ? printed(0, lines) : failed(exitCode, lines)
}

/** What a command says while it goes on: lines, or one JSON value on a line of its own. */
export function printTold({ lines, json }: Told, format: Format): string {
  return textOf(format === 'json' ? [JSON.stringify(json)] : lines)
}

/** What goes to stdout, line by line. */
export function printed(exitCode: Printed['exitCode'], lines: readonly string[]): Printed {
  return { exitCode, stdout: textOf(lines), stderr: '' }
}

/** What goes to stderr, line by line. */
export function failed(exitCode: Printed['exitCode'], lines: readonly string[]): Printed {
  return { exitCode, stdout: '', stderr: textOf(lines) }
}

/** Help for the whole program. */
export function usage(commands: readonly Command[]): readonly string[] {
  const width = Math.max(...commands.map(({ name }) => name.length))
  return [
    'usage: purser <command> [options]',
    '',
    ...commands.map(({ name, summary }) => `  ${name.padEnd(width)}  ${summary}`),
    '',
    'Each command takes --help and --format json. purser --version says which version this is.',
    'Exits with 0 when it is done, 1 when the answer is no, 2 when it could not be done.',
  ]
}

/** Help for one command. */
export function usageOf({ name, summary, positionals, options, notes }: Command): readonly string[] {
  const shown = Object.entries(options).map(([option, { value, about }]) => [spelled(option, value), about] as const)
  const all = [...shown, ['--format text|json', 'for people or for programs (text when left out)'] as const]
  const width = Math.max(...all.map(([option]) => option.length))
  return [
    `usage: purser ${[name, ...positionals].join(' ')} [options]`,
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
