import { parseArgs } from 'node:util'
import { openKeyRing } from '../custody/index.ts'
import { openFiles, openMarks } from '../files/index.ts'
import { systemClock } from '../platform/clock.ts'
import { type Db, openDb } from '../platform/db/db.ts'
import { requireMigrated } from '../platform/db/migrate.ts'
import { Problem } from '../platform/errors.ts'
import { newId } from '../platform/ids.ts'
import { createLog } from '../platform/log.ts'
import { createOutbound, type Outbound } from '../platform/outbound.ts'
import { systemRandom } from '../platform/random.ts'
import type { Command, Operator, Outcome } from './command.ts'
import { commands } from './commands.ts'
import { type AdminSettings, readAdminSettings } from './settings.ts'

/** Output and exit code of a run: 0 done, 1 refused or broken, 2 invalid arguments or configuration. */
export interface Printed {
  readonly exitCode: 0 | 1 | 2
  readonly stdout: string
  readonly stderr: string
}

/**
 * Runs `purser-admin <args>`; a leading `admin`, as in `purser admin <args>`, is accepted. It accesses the database directly, as the
 * operator, and every change is in the audit log.
 */
export async function runAdmin(
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Promise<Printed> {
  const { name, rest } = splitArgs(args)
  if (name === undefined || name === '--help') return printed(0, usage())
  const command = commands.find((known) => known.name === name)
  if (command === undefined) return failed(2, `unknown command: ${name}\n\n${usage()}`)
  const read = readOptions(command, rest)
  if (typeof read === 'string') return failed(2, `${read}\n\n${usageOf(command)}`)
  if (read.help) return printed(0, usageOf(command))
  const settings = readAdminSettings(env)
  if (typeof settings === 'string') return failed(2, settings)
  const outcome = await withOperator(settings, command, (operator) => command.run(operator, read.options as never))
  const text = read.format === 'json' ? JSON.stringify(outcome.json, null, 2) : outcome.text
  return outcome.exitCode === 0 || read.format === 'json' ? printed(outcome.exitCode, text) : failed(1, text)
}

/** Drops a leading `admin`; `keys` and the next word form one command. */
function splitArgs(args: readonly string[]): { readonly name: string | undefined; readonly rest: readonly string[] } {
  const [first, ...more] = args[0] === 'admin' ? args.slice(1) : args
  if (first !== 'keys' || more[0] === undefined || more[0].startsWith('-')) return { name: first, rest: more }
  return { name: `keys ${more[0]}`, rest: more.slice(1) }
}

async function withOperator(
  settings: AdminSettings,
  { takesAnyDatabase = false }: Command,
  work: (operator: Operator) => Promise<Outcome>,
): Promise<Outcome> {
  const log = createLog({ level: 'silent' })
  const db = openDb({ url: settings.databaseUrl, pooler: settings.databasePooler, connectionsMax: 2, log })
  const outbound = createOutbound()
  try {
    if (!takesAnyDatabase) await requireMigrated(db)
    return await work(operatorOf(settings, { db, outbound }))
  } catch (error) {
    const reason =
      error instanceof Problem ? error.entry.detail : `failed: ${error instanceof Error ? error.message : error}`
    return { text: reason, json: { error: reason }, exitCode: 1 }
  } finally {
    await outbound.close()
    await db.close()
  }
}

function operatorOf(
  { databaseUrl, databasePooler, environments, keptDays, baseUrl, keys, witness, files }: AdminSettings,
  { db, outbound }: { readonly db: Db; readonly outbound: Outbound },
): Operator {
  const floor = { db, clock: systemClock, random: systemRandom }
  const openKeys = keys && (() => openKeyRing(keys, { ...floor, outbound, createIfMissing: false }))
  const marksOf = witness && (() => openMarks(witness, floor))
  return {
    ...floor,
    databaseUrl,
    databasePooler,
    environments,
    keptDays,
    baseUrl,
    openKeys,
    openMarks: marksOf,
    openBlobs: files && (() => openFiles(files, floor)),
    actor: { kind: 'operator' },
    requestId: newId('req', floor),
  }
}

interface ReadOptions {
  readonly help: boolean
  readonly format: string
  readonly options: unknown
}

/** The command's parsed options, or a message that names the fault. */
function readOptions(command: Command, args: readonly string[]): ReadOptions | string {
  const named = Object.fromEntries(Object.keys(command.options).map((name) => [name, { type: 'string' } as const]))
  const extra = { help: { type: 'boolean', short: 'h' }, format: { type: 'string' } } as const
  try {
    const { values } = parseArgs({ args: [...args], options: { ...named, ...extra }, strict: true })
    const { help = false, format = 'text', ...options } = values
    if (help === true) return { help: true, format: 'text', options: {} }
    if (format !== 'text' && format !== 'json') return '--format is text or json'
    const parsed = command.schema.safeParse(options)
    if (parsed.success) return { help: false, format, options: parsed.data }
    return parsed.error.issues.map((issue) => `--${issue.path.join('.')}: ${issue.message}`).join('\n')
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

function usage(): string {
  const lines = commands.map(({ name, summary }) => `  ${fullName(name).padEnd(35)} ${summary}`)
  return `Operator commands, on the database that DATABASE_URL names:\n\n${lines.join('\n')}\n\nEach takes --help and --format json.`
}

function fullName(name: string): string {
  return name.startsWith('keys ') || name === 'migrate' ? `purser ${name}` : `purser admin ${name}`
}

function usageOf({ name, summary, options }: Command): string {
  const lines = Object.entries(options).map(([option, about]) => `  --${option.padEnd(16)} ${about}`)
  return `${fullName(name)}: ${summary}\n\n${lines.join('\n')}\n  --format           text or json (default text)`
}

function printed(exitCode: Printed['exitCode'], text: string): Printed {
  return { exitCode, stdout: `${text}\n`, stderr: '' }
}

function failed(exitCode: 1 | 2, text: string): Printed {
  return { exitCode, stdout: '', stderr: `${text}\n` }
}
