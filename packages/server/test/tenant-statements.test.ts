import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { sql } from '../src/platform/db/db.ts'
import { freshDatabase, type TestDatabase } from './database.ts'

const features = path.resolve(import.meta.dirname, '../src/features')

/** A template of SQL, with the templates that it contains. Its comments, which name nothing, are removed below. */
const template = /sql`(?:[^`$]|\$(?!\{)|\$\{(?:[^{}`]|`[^`]*`|\{[^{}]*\})*\})*`/g

const statements = readdirSync(features, { recursive: true, encoding: 'utf8' })
  .filter((name) => /(^|[-/])store\.ts$/.test(name))
  .flatMap((name) => readFileSync(path.join(features, name), 'utf8').match(template) ?? [])
  .map((statement) => statement.replace(/--.*|\/\*[\s\S]*?\*\//g, ''))

/** Names the organisation, or is a part of a statement that does: `own` and `mine` are conditions on it. */
const namesTenant = /organisation_id|tenant|\$\{(own|mine|ownWebhooks)\}/i

/**
 * Tables that some statement uses without the organisation. Such a statement takes ids that a statement with the organisation returned, finds rows
 * by a secret or a hash that is unique, reads what is public or an account's own, or is the work of a process for all organisations: what is due, what
 * a transaction on the chain decided, and what is old. Statements on all other tables name the organisation.
 */
const byId: readonly string[] = [
  'api_keys',
  'child_addresses',
  'discovered_resources',
  'events',
  'events_postponed',
  'master_wallets',
  'members',
  'movement_approvals',
  'opening_amounts',
  'payment_refunds',
  'payments',
  'policy_reservations',
  'registry_routes',
  'relay_turns',
  'relays',
  'request_log',
  'reservations',
  'sessions',
  'sweep_transfers',
  'sweeps',
  'taint_checkpoints',
  'taint_traces',
  'tainted_places',
  'transfer_quotes',
  'transfers',
  'vault_events',
  'vault_files',
  'vault_tokens',
  'vault_uploads',
  'vaults',
  'wallet_payments',
  'wallet_rollups',
  'wallet_transactions',
  'watched_addresses',
  'webhook_deliveries',
  'webhooks',
  'withdrawals',
]

let database: TestDatabase

beforeAll(async () => {
  database = await freshDatabase()
})
afterAll(() => database?.drop())

test("every statement of a feature on a tenant's table names the organisation, except on the listed tables", async () => {
  const columns = await database.db.many(
    z.object({ tableName: z.string() }),
    sql`select table_name from information_schema.columns where table_schema = 'public' and column_name = 'organisation_id'`,
  )
  const tables = columns.map(({ tableName }) => tableName)
  const uses = new RegExp(`\\b(?:from|update|into|join|using)\\s+(?:only\\s+)?(${tables.join('|')})\\b`, 'gi')
  const found = statements
    .filter((statement) => !namesTenant.test(statement))
    .flatMap((statement) => [...statement.matchAll(uses)].map(([, table = '']) => table))
  expect([...new Set(found)].sort()).toEqual(byId)
  expect(tables.length - byId.length, 'tables whose every statement names the organisation').toBeGreaterThan(40)
})
