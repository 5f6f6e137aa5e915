import { readFile } from 'node:fs/promises'
import type { QueryValue } from '@purser/sdk'
import { type Args, type Command, CommandError, type Io, type Option, type Outcome } from '../command.ts'
import { apiOperations } from '../generated/operations.ts'
import { acceptedExitCode, sendKeyed } from '../keyed.ts'
import type { ApiOperation, OperationArgument } from '../operation.ts'
import { serviceOf, serviceOptions } from '../service.ts'
import { recordLines, tableLines } from '../table.ts'

const limitDefault = 20
const limitMax = 10_000
const pageMax = 500

/** Operations without a generated command: another command covers them, or only programs need them. */
const withoutCommand: ReadonlySet<string> = new Set([
  'events list',
  'events get',
  'events resend',
  'events trigger',
  'events types',
  'events listener',
])

/** One command for each operation of the interface, from openapi.json. */
export const operationCommands: readonly Command[] = apiOperations
  .filter(({ name }) => !withoutCommand.has(name))
  .map(commandOf)

/** An option of `purser` by the name of an argument: `walletId` is `--wallet-id`, `acceptMPP` is `--accept-mpp`. */
export function optionOf(name: string): string {
  return name.replaceAll(/[A-Z]+/g, (letters) => `-${letters.toLowerCase()}`)
}

function commandOf(operation: ApiOperation): Command {
  const positionals = operation.arguments.filter((argument) => argument.in === 'path')
  const others = operation.arguments.filter((argument) => argument.in !== 'path' && !isPaging(operation, argument))
  const hasBody = others.some((argument) => argument.in === 'body')
  return {
    name: operation.name,
    summary: operation.summary,
    positionals: positionals.map(({ name }) => `<${optionOf(name)}>`),
    options: {
      ...Object.fromEntries(others.map((argument) => [optionOf(argument.name), describe(argument)])),
      ...(operation.isList && {
        limit: { value: '<number>', about: `maximum number of items (default ${limitDefault}, at most ${limitMax})` },
      }),
      ...(hasBody && { input: { value: '<json|@file>', about: 'the whole body; options override its members' } }),
      ...(operation.takesIdempotencyKey && {
        'idempotency-key': { value: '<key>', about: 'repeat with the same key to get the first response again' },
      }),
      ...serviceOptions,
    },
    notes: [`Calls ${operation.method} ${operation.path}`],
    run: (args, io) => runOperation(operation, args, io),
  }
}

/** The command follows pages itself. */
function isPaging({ isList }: ApiOperation, { name }: OperationArgument): boolean {
  return isList && (name === 'limit' || name === 'cursor')
}

function describe({ type, required, about }: OperationArgument): Option {
  const value = { text: '<text>', number: '<number>', boolean: 'true|false', json: '<json>' }[type]
  return { value, about: [about, required ? '(required)' : ''].filter((text) => text !== '').join(' ') || '–' }
}

async function runOperation(operation: ApiOperation, args: Args, io: Io): Promise<Outcome> {
  const { path, query, body } = await requestOf(operation, args)
  const limit = operation.isList ? limitIn(args.options.limit) : 0
  const { purser } = await serviceOf(args, io)
  if (operation.isList) {
    const items = await purser.list(path, { query: { ...query, limit: Math.min(limit, pageMax) } }).toArray({ limit })
    return { exitCode: 0, lines: tableLines(items), json: items }
  }
  const { method, takesIdempotencyKey } = operation
  const request = { query, ...(body !== undefined && { body }) }
  const result = takesIdempotencyKey
    ? (await sendKeyed(purser, { method, path, ...request }, args, io)).response
    : await purser.request(method, path, request)
  const exitCode = takesIdempotencyKey ? acceptedExitCode(result) : 0
  return { exitCode, lines: result === undefined ? ['Done.'] : recordLines(result), json: result ?? null }
}

interface OperationRequest {
  readonly path: `/${string}`
  readonly query: Readonly<Record<string, QueryValue>>
  readonly body: unknown
}

/**
 * Returns the request for the arguments. Throws a `CommandError` for a missing argument or a value of the wrong type.
 */
async function requestOf(operation: ApiOperation, { positionals, options }: Args): Promise<OperationRequest> {
  const all = operation.arguments.filter((argument) => !isPaging(operation, argument))
  const input = options.input === undefined ? undefined : await bodyIn(options.input)
  const given = all.flatMap((argument) => {
    const text = argument.in === 'path' ? undefined : options[optionOf(argument.name)]
    return text === undefined ? [] : [{ argument, value: parsedValue(argument, text) }]
  })
  const missing = all.filter(
    ({ name, in: place, required }) =>
      required &&
      place !== 'path' &&
      !given.some(({ argument }) => argument.name === name) &&
      !(place === 'body' && input !== undefined),
  )
  if (missing.length > 0)
    throw new CommandError(`${missing.map(({ name }) => `--${optionOf(name)}`).join(', ')} must be given.`)
  const members = (place: OperationArgument['in']) =>
    Object.fromEntries(
      given.filter(({ argument }) => argument.in === place).map(({ argument, value }) => [argument.name, value]),
    )
  const hasBody = all.some((argument) => argument.in === 'body')
  return {
    path: pathOf(operation, positionals),
    query: members('query') as OperationRequest['query'],
    body: hasBody ? { ...input, ...members('body') } : undefined,
  }
}

function pathOf(operation: ApiOperation, positionals: readonly string[]): `/${string}` {
  const names = operation.arguments.filter((argument) => argument.in === 'path').map(({ name }) => name)
  const filled = names.reduce<string>((path, name, index) => {
    const value = positionals[index] ?? ''
    // A path segment `.` or `..` would change the path of the request.
    if (/^\.{0,2}$/.test(value)) throw new CommandError(`<${optionOf(name)}> must be given.`)
    return path.replace(`{${name}}`, encodeURIComponent(value))
  }, operation.path)
  return filled as `/${string}`
}

function parsedValue({ name, type }: OperationArgument, text: string): unknown {
  if (type === 'text') return text
  if (type === 'boolean') {
    if (text !== 'true' && text !== 'false') throw new CommandError(`--${optionOf(name)} is true or false.`)
    return text === 'true'
  }
  if (type === 'number') {
    const value = Number(text)
    if (text.trim() === '' || !Number.isFinite(value)) throw new CommandError(`--${optionOf(name)} is a number.`)
    return value
  }
  try {
    return JSON.parse(text)
  } catch {
    // Not valid JSON: a member that may also be a string takes the text as it is, so a string needs no quotes.
    return text
  }
}

/** Parses `--input`: a JSON object, or `@` and the name of a JSON file. */
async function bodyIn(text: string): Promise<Readonly<Record<string, unknown>>> {
  const json = text.startsWith('@') ? await readText(text.slice(1)) : text
  try {
    const value: unknown = JSON.parse(json)
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { ...value }
  } catch {}
  throw new CommandError('--input is a JSON object, or @ and the name of a file that contains one.')
}

function readText(file: string): Promise<string> {
  return readFile(file, 'utf8').catch(() => {
    throw new CommandError(`${file} cannot be read.`)
  })
}

function limitIn(text: string | undefined): number {
  if (text === undefined) return limitDefault
  const limit = /^\d{1,5}$/.test(text) ? Number(text) : 0
  if (limit < 1 || limit > limitMax) throw new CommandError(`--limit must be a number from 1 to ${limitMax}.`)
  return limit
}
