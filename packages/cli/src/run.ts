import { PurserError } from '@purser/sdk'
import type { Command, Io, Outcome } from './command.ts'
import { commands, elsewhere, mainCommands } from './commands.ts'
import { OutcomeUnknownError } from './keyed.ts'
import { listed, type Printed, type Program, runProgram } from './program.ts'
import { versionOf } from './version.ts'

const purser: Program<Io> = {
  commands,
  usage: usage(mainCommands, commands),
  spell: (name) => `purser ${name}`,
  elsewhere,
  version: () => versionOf(import.meta.url),
  outcomeOf,
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
    'purser --version says which version this is.',
    'Exit codes: 0 success, 1 negative result or refused request, 2 failure, 3 a request that waits for an approval.',
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

function outcomeOf(error: unknown): Outcome | undefined {
  if (error instanceof PurserError) return outcomeOfRefusal(error)
  return error instanceof OutcomeUnknownError ? outcomeOfUnknown(error) : undefined
}

/** The outcome of a request that, or an earlier run of which, may have taken effect: why it is not known, and the key to repeat it with. */
function outcomeOfUnknown({ cause, idempotencyKey, run }: OutcomeUnknownError): Outcome {
  const { lines, json } = cause instanceof PurserError ? refusalOf(cause) : interrupted
  const advice =
    `${run === 'earlier' ? 'An earlier run with this key' : 'The request'} may have been done. To find out, run the same command within 24 hours with ` +
    `--idempotency-key ${idempotencyKey}. With another key it can be done twice.`
  return { exitCode: 2, lines: [...lines, advice], json: { error: { ...json, idempotencyKey, advice } } }
}

const interrupted = {
  lines: ['Interrupted', 'The command was stopped before the service responded.'],
  json: { code: 'interrupted', title: 'Interrupted' },
}

/** The outcome of an error of the service: 1 if it refused the request, 2 if nothing was decided and a retry may succeed. */
function outcomeOfRefusal(error: PurserError): Outcome {
  const { lines, json } = refusalOf(error)
  return { exitCode: error.isOutcomeKnown ? 1 : 2, lines, json: { error: json } }
}

/** An error of the service: its title, detail and field errors, and the request id for its operator. */
function refusalOf(error: PurserError) {
  const { status, code, requestId, problem } = error
  const title = problem?.title ?? (status === undefined ? 'No Response' : 'Unexpected Response')
  const detail = problem?.detail ?? error.message
  const errors = problem?.errors ?? []
  const reason = typeof problem?.reason === 'string' ? [`Reason: ${problem.reason}`] : []
  return {
    lines: [
      `${title}${status === undefined ? '' : ` (${status})`}`,
      detail,
      ...errors.map(({ path, message }) => `  ${path || 'the request'}: ${message}`),
      ...reason,
      ...(requestId === undefined ? [] : [`Request ${requestId}`]),
    ],
    json: { code, status, title, detail, errors, requestId },
  }
}
