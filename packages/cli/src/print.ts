import type { Command, Format, Option, Outcome, Output } from './command.ts'

/** Output formats: `text` for people, `json` for programs. */
export const formats = ['text', 'json'] as const

/** The output of the program, and its exit code. */
export interface Printed {
  readonly exitCode: Outcome['exitCode']
  readonly stdout: string
  readonly stderr: string
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
export function printOutcome({ exitCode, lines, json }: Outcome, format: Format): Printed {
  if (format === 'json') return printed(exitCode, JSON.stringify(json, null, 2).split('\n'))
  return exitCode === 0 ? printed(0, lines) : failed(exitCode, lines)
}

/** Formats output of a command that still runs: lines, or one JSON value on a line of its own. */
export function printOutput({ lines, json }: Output, format: Format): string {
  return textOf(format === 'json' ? [JSON.stringify(json)] : lines)
}

/** A result whose lines go to stdout. */
export function printed(exitCode: Printed['exitCode'], lines: readonly string[]): Printed {
  return { exitCode, stdout: textOf(lines), stderr: '' }
}

/** A result whose lines go to stderr. */
export function failed(exitCode: Printed['exitCode'], lines: readonly string[]): Printed {
  return { exitCode, stdout: '', stderr: textOf(lines) }
}

/** Help for the whole program: its main commands, and the first words of the others. */
export function usage(main: readonly Command[], all: readonly Command[]): readonly string[] {
  const counts = new Map<string, number>()
  for (const command of all.filter((other) => !main.includes(other))) {
    const [word = ''] = command.name.split(' ')
    counts.set(word, (counts.get(word) ?? 0) + 1)
  }
  const groups = [...counts].map(([word, count]) => `${word} (${count})`)
  return [
    'usage: purser <command> [options]',
    '',
    ...listed(main),
    '',
    'Every operation of the interface is a command too, named by its id, such as purser wallets master list:',
    '',
    ...wrapped(groups),
    '',
    'purser help <word> lists the commands that begin with it. Each command takes --help and --format json.',
    'purser --version says which version this is. Exit codes: 0 success, 1 negative result or refused request, 2 failure.',
  ]
}

/** Help for commands that begin with the same words. */
export function groupUsage(commands: readonly Command[]): readonly string[] {
  return ['usage: purser <command> [options]', '', ...listed(commands)]
}

function listed(commands: readonly Command[]): readonly string[] {
  const width = Math.max(...commands.map(({ name }) => name.length))
  return commands.map(({ name, summary }) => `  ${name.padEnd(width)}  ${summary}`)
}

/** Words in lines of at most 80 characters. */
function wrapped(words: readonly string[]): readonly string[] {
  return words.reduce<string[]>((lines, word) => {
    const line = lines.at(-1)
    if (line === undefined || line.length + word.length > 78) lines.push(`  ${word}`)
    else lines[lines.length - 1] = `${line}, ${word}`
    return lines
  }, [])
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
