import { globSync, readdirSync, readFileSync } from 'node:fs'
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

test('no file is too long, tests and the other packages included', () => {
  const root = path.resolve(import.meta.dirname, '../../..')
  const written = globSync(['packages/*/{src,test}/**/*.{ts,tsx}', 'bench/**/*.ts'], { cwd: root }).filter(
    (name) => !name.includes('/generated/'),
  )
  expect(written.length).toBeGreaterThan(1_500)
  const linesOf = (name: string) => readFileSync(path.join(root, name), 'utf8').trimEnd().split('\n').length
  expect(written.filter((name) => linesOf(name) > 400)).toEqual([])
})

test('no file has a name that says nothing of what it answers', () => {
  expect(
    files
      .filter(({ name }) => /(^|\/)(utils?|helpers?|common|shared|core|lib|misc|types)(\.ts|\/)/.test(name))
      .map(({ name }) => name),
  ).toEqual([])
})

test('a feature names what it needs: nothing merges dependencies into a type of the platform', () => {
  const merging = files.filter(({ text }) => /\bdeclare module '[./]/.test(text))
  expect(merging.map(({ name }) => name)).toEqual([])
  const whole = files.filter(
    ({ name, text }) => name.startsWith('features/') && /from '(\.\.\/)+(deps|modules|boot)\.ts'/.test(text),
  )
  expect(whole.map(({ name }) => name)).toEqual([])
})

test('dependencies are complete when a feature is built: no file assigns a callback later', () => {
  const wiring = files.filter(
    ({ name }) => ['boot.ts', 'deps.ts', 'modules.ts'].includes(name) || /^features\/\w+\/index\.ts$/.test(name),
  )
  expect(wiring.length).toBeGreaterThan(15)
  const patched = wiring.filter(
    ({ name, text }) => name !== 'deps.ts' && /^ *let \w+ = \(?\{?.*=> undefined/m.test(text),
  )
  expect(patched.map(({ name }) => name)).toEqual([])
})
