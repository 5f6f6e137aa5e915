import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { sql } from '../src/platform/db/db.ts'
import { freshDatabase, type TestDatabase } from './database.ts'
import { ofNoTenant } from './statements-of-no-tenant.ts'

const features = path.resolve(import.meta.dirname, '../src/features')

/** A template of SQL, with the templates that it contains. */
const template = /sql`(?:[^`$]|\$(?!\{)|\$\{(?:[^{}`]|`[^`]*`|\{[^{}]*\})*\})*`/g

const stores = readdirSync(features, { recursive: true, encoding: 'utf8' })
  .filter((name) => /(^|[-/])store\.ts$/.test(name))
  .map((name) => ({ name: name.replaceAll(path.sep, '/'), text: readFileSync(path.join(features, name), 'utf8') }))
  .toSorted((one, other) => (one.name < other.name ? -1 : 1))

/** Statements without their comments, which name nothing. */
const statementsOf = (text: string): string[] =>
  (text.match(template) ?? []).map((statement) => statement.replace(/--.*|\/\*[\s\S]*?\*\//g, ''))

/** Names the organisation, by a column or by a condition on the tenant that is built elsewhere. */
const namesTenant = /organisation_id|\$\{(?:own|mine|ownWebhooks)\}|\$\{\w+\((?:tenant|own)\b/

let database: TestDatabase

beforeAll(async () => {
  database = await freshDatabase()
})
afterAll(() => database?.drop())

/** The tables of tenants that each store uses without the organisation, with the number of such statements. */
function foundIn(tables: readonly string[]): Record<string, Record<string, number>> {
  const uses = new RegExp(`\\b(?:from|update|into|join|using)\\s+(?:only\\s+)?(${tables.join('|')})\\b`, 'gi')
  const found: Record<string, Record<string, number>> = {}
  for (const { name, text } of stores) {
    for (const statement of statementsOf(text)) {
      if (namesTenant.test(statement)) continue
      const counts = found[name] ?? {}
      for (const table of new Set([...statement.matchAll(uses)].map(([, used = '']) => used))) {
        counts[table] = (counts[table] ?? 0) + 1
        found[name] = counts
      }
    }
  }
  return found
}

test("every statement of a feature on a tenant's table names the organisation, except the counted ones", async () => {
  const columns = await database.db.many(
    z.object({ tableName: z.string() }),
    sql`select table_name from information_schema.columns where table_schema = 'public' and column_name = 'organisation_id'`,
  )
  const tables = columns.map(({ tableName }) => tableName)
  expect(tables.length).toBeGreaterThan(70)
  expect(foundIn(tables)).toEqual(ofNoTenant)
})

test('every template of SQL in a store is read as a statement', () => {
  expect(stores.filter(({ text }) => text.replace(template, '').includes('sql`')).map(({ name }) => name)).toEqual([])
  expect(stores.flatMap(({ text }) => statementsOf(text)).length).toBeGreaterThan(500)
})
