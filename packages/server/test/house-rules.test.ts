import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'

const source = path.resolve(import.meta.dirname, '../src')

interface SourceFile {
  readonly name: string
  readonly text: string
}

const files: readonly SourceFile[] = readdirSync(source, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'))
  .map((name) => ({ name, text: readFileSync(path.join(source, name), 'utf8') }))

/** Terms that belong to one file, and the files that may use them. */
const owned: readonly (readonly [RegExp, readonly string[]])[] = [
  [/\bnew Date\(/, ['platform/clock.ts']],
  [/\bDate\.now\(/, ['platform/clock.ts']],
  [/\bMath\.random\(/, []],
  [/\bprocess\.env\b/, ['config.ts', 'main.ts', 'admin/main.ts']],
  [/(?<![.\w])fetch\(/, []],
  [/\brandomBytes\(/, ['platform/random.ts']],
  [/\bpg_notify\b|\bnotify\s+\w+\s*,/i, []],
]

test.each(owned)('%s occurs only in the file that wraps it', (word, owners) => {
  expect(files.filter(({ name, text }) => word.test(text) && !owners.includes(name)).map(({ name }) => name)).toEqual(
    [],
  )
})

test('SQL occurs only in stores, migrations and the platform', () => {
  const speaking = files.filter(
    ({ name, text }) => /\bsql`/.test(text) && !/(^|[-/])store\.ts$/.test(name) && !name.startsWith('platform/'),
  )
  expect(speaking.map(({ name }) => name)).toEqual([])
})

test('one statement inserts payments, whatever the plan', () => {
  const folder = path.join(source, 'platform/db/migrations')
  const migrations = readdirSync(folder).map((name) => ({ name, text: readFileSync(path.join(folder, name), 'utf8') }))
  const writing = /\b(?:insert\s+into|merge\s+into|copy)\s+(?:only\s+)?(?:public\.)?"?payments"?(?![\w"])/gi
  const found = [...files, ...migrations].flatMap(({ name, text }) => (text.match(writing) ?? []).map(() => name))
  expect(found).toEqual(['features/payments/record-store.ts'])
})

/**
 * These find the owner of an address for the process that sends every tenant's transactions, and advance every tenant's
 * indices after a restore.
 */
const ofNoTenant = ['features/wallets/managed/source-store.ts', 'features/wallets/restore-store.ts']

test("every statement on a tenant's table in a feature names the organization", () => {
  const statements = files
    .filter(({ name }) => /^features\/(wallets|account)\/.*store\.ts$/.test(name))
    .flatMap(({ name, text }) => (text.match(/sql`[^`]*`/g) ?? []).map((statement) => ({ name, statement })))
    .filter(({ statement }) => /\b(from|update|into)\s+(byo_wallets|master_wallets|child_addresses)\b/.test(statement))
  expect(statements.length).toBeGreaterThan(0)
  expect(
    statements
      .filter(({ name, statement }) => !statement.includes('organisation_id') && !ofNoTenant.includes(name))
      .map(({ name }) => name),
  ).toEqual([])
})

test('each decision has a number of its own', () => {
  const names = readdirSync(path.resolve(import.meta.dirname, '../../../docs/decisions'))
  const numbers = names.map((name) => name.slice(0, 4))
  expect(numbers.filter((number, at) => numbers.indexOf(number) !== at)).toEqual([])
})

test('no file is too long', () => {
  expect(files.filter(({ text }) => text.split('\n').length > 400).map(({ name }) => name)).toEqual([])
  expect(
    files
      .filter(({ name }) => /(^|\/)(utils?|helpers?|common|shared|core|lib|misc|types)(\.ts|\/)/.test(name))
      .map(({ name }) => name),
  ).toEqual([])
})
