import { listed, type Outcome, type Printed, type Program, runProgram } from '@purser/cli/program'
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
import { findState } from '../platform/witness/store.ts'
import { createWitness } from '../platform/witness/witness.ts'
import type { AsOperator, Operator } from './command.ts'
import { commands } from './commands.ts'
import { type AdminSettings, readAdminSettings } from './settings.ts'

/** The command as a user types it: `purser migrate` and `purser keys …`, otherwise `purser admin …`. */
const spell = (name: string): string =>
  name.startsWith('keys ') || name === 'migrate' ? `purser ${name}` : `purser admin ${name}`

const admin: Program<AsOperator> = {
  commands,
  usage: [
    'Operator commands, on the database that DATABASE_URL names:',
    '',
    ...listed(commands.map(({ name, summary }) => ({ name: spell(name), summary }))),
    '',
    'Each takes --help and --format json. Exit codes: 0 success, 1 negative result or refused, 2 failure.',
  ],
  spell,
  outcomeOf: () => undefined,
}

/**
 * Runs `purser-admin <args>`; a leading `admin`, as in `purser admin <args>`, is accepted. It accesses the database directly, as the
 * operator, and every change is in the audit log.
 */
export function runAdmin(args: readonly string[], env: Readonly<Record<string, string | undefined>>): Promise<Printed> {
  const words = args[0] === 'admin' ? args.slice(1) : args
  return runProgram(admin, words.length === 0 ? ['--help'] : words, {
    context: asOperatorOf(env),
    print: () => undefined,
  })
}

function asOperatorOf(env: Readonly<Record<string, string | undefined>>): AsOperator {
  return async ({ takesAnyDatabase }, work) => {
    const settings = readAdminSettings(env)
    if (typeof settings === 'string') return failure(2, settings)
    const log = createLog({ level: 'silent' })
    const db = openDb({ url: settings.databaseUrl, pooler: settings.databasePooler, connectionsMax: 2, log })
    const outbound = createOutbound()
    try {
      if (!takesAnyDatabase) await requireMigrated(db)
      return await work(operatorOf(settings, { db, outbound }))
    } catch (error) {
      if (error instanceof Problem) return failure(1, error.entry.detail)
      return failure(1, `failed: ${error instanceof Error ? error.message : error}`)
    } finally {
      await outbound.close()
      await db.close()
    }
  }
}

function failure(exitCode: 1 | 2, reason: string): Outcome {
  return { exitCode, lines: reason.split('\n'), json: { error: reason } }
}

function operatorOf(
  { databaseUrl, databasePooler, environments, keptDays, baseUrl, keys, witness, files }: AdminSettings,
  { db, outbound }: { readonly db: Db; readonly outbound: Outbound },
): Operator {
  const floor = { db, clock: systemClock, random: systemRandom }
  const openKeys = keys && (() => openKeyRing(keys, { ...floor, outbound, createIfMissing: false }))
  const marksOf = witness && (() => openMarks(witness, floor))
  const cover = marksOf === undefined ? () => Promise.resolve() : () => coverWith(marksOf, floor)
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
    // A command of the operator makes one mark, also for a repetition.
    witness: { cover, coverRepetition: cover },
    actor: { kind: 'operator' },
    requestId: newId('req', floor),
  }
}

const uncovered =
  'the change is stored, but no mark of the witness covers it, so that its loss would not be detected: see witness at /readyz, then run the command again'

/** Covers what a command committed, as the service does. A database that no service has run on has nothing to cover. */
async function coverWith(
  open: NonNullable<Operator['openMarks']>,
  { db, clock }: Pick<Operator, 'db' | 'clock'>,
): Promise<void> {
  if ((await findState(db)) === undefined) return
  const marks = await open()
  try {
    const witness = createWitness({ marks, clock, log: createLog({ level: 'silent' }) })
    witness.open(db)
    await witness.cover()
  } catch (error) {
    throw new Error(uncovered, { cause: error })
  } finally {
    marks.close()
  }
}
