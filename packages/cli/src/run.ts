import { PurserError } from '@purser/sdk'
import type { Command, Io, Outcome } from './command.ts'
import { commands, elsewhere, mainCommands } from './commands.ts'
import { listed, type Printed, type Program, runProgram } from './program.ts'
import { versionOf } from './version.ts'

const purser: Program<Io> = {
  commands,
  usage: usage(mainCommands, commands),
  spell: (name) => `purser ${name}`,
  elsewhere,
  version: () => versionOf(import.meta.url),
  outcomeOf: (error) => (error instanceof PurserError ? refusalOf(error) : undefined),
}

/** Runs `purser <args>`. Never throws: an unexpected error exits with 2, because 1 would mean that a proof is invalid. */
export function run(args: readonly string[], io: Io): Promise<Printed> {
  return runProgram(purser, args, { context: io, print: io.print })
}

/** Help for the whole program: its main commands, and the first words of the others. */
function usage(main: readonly Command[], all: readonly Command[]): readonly string[] {
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

/** Words in lines of at most 80 characters. */
function wrapped(words: readonly string[]): readonly string[] {
  return words.reduce<string[]>((lines, word) => {
    const line = lines.at(-1)
    if (line === undefined || line.length + word.length > 78) lines.push(`  ${word}`)
    else lines[lines.length - 1] = `${line}, ${word}`
    return lines
  }, [])
}

/**
 * Turns an error of the service into an outcome: its title, detail and field errors, and the request id for its operator. Exits
 * with 1 for a 4xx; with 2 where nothing was decided and a retry may succeed.
 */
function refusalOf(error: PurserError): Outcome {
  const { status, code, requestId, problem } = error
  const title = problem?.title ?? (status === undefined ? 'No Response' : 'Unexpected Response')
  const detail = problem?.detail ?? error.message
  const errors = problem?.errors ?? []
  const reason = typeof problem?.reason === 'string' ? [`Reason: ${problem.reason}`] : []
  return {
    exitCode: status !== undefined && status >= 400 && status < 500 ? 1 : 2,
    lines: [
      `${title}${status === undefined ? '' : ` (${status})`}`,
      detail,
      ...errors.map(({ path, message }) => `  ${path || 'the request'}: ${message}`),
      ...reason,
      ...(requestId === undefined ? [] : [`Request ${requestId}`]),
    ],
    json: { error: { code, status, title, detail, errors, requestId } },
  }
}
