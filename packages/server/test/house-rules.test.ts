import { globSync, readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { networks } from '@purser/protocol'
import { expect, test } from 'vitest'
import { offRampAdapters, routingAdapters } from '../src/partners/adapters.ts'

const source = path.resolve(import.meta.dirname, '../src')
const root = path.resolve(import.meta.dirname, '../../..')

interface SourceFile {
  readonly name: string
  readonly text: string
}

const files: readonly SourceFile[] = readdirSync(source, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'))
  .map((name) => ({ name, text: readFileSync(path.join(source, name), 'utf8') }))

/**
 * Files that parse URLs by themselves: those of the service's own settings, files and requests, and texts that a schema has parsed with `parseUrl`.
 * Any other text of a caller, a seller or a node goes to `parseUrl`, because a long host takes time that grows with the square of its length.
 */
const urlParsers = [
  'platform/parse-url.ts',
  ...[
    'admin/settings.ts',
    'config.ts',
    'own-hosts.ts',
    'partners/screening/refresh.ts',
    'partners/settings.ts',
    'sign-in-config.ts',
  ],
  ...['files/hashing.ts', 'platform/db/migrate.ts', 'print-errors.ts', 'print-events.ts', 'print-openapi.ts'],
  ...[
    'features/people/auth.ts',
    'features/people/link-page.ts',
    'features/people/pages.ts',
    'features/people/sign-in.ts',
  ],
  ...['platform/http/guides/guide-pages.ts', 'platform/http/key-set.ts', 'platform/outbound.ts'],
  ...['features/payments/mpp/terms.ts', 'features/payments/session.ts', 'features/webhooks/webhooks.ts'],
]

/** Terms that belong to one file, and the files that may use them. */
const owned: readonly (readonly [RegExp, readonly string[]])[] = [
  [/\bnew Date\(/, ['platform/clock.ts']],
  [/\bDate\.now\(/, ['platform/clock.ts']],
  [/\bMath\.random\(/, []],
  [/\bprocess\.env\b/, ['config.ts', 'main.ts', 'admin/main.ts']],
  [/(?<![.\w])fetch\(/, []],
  [/\bnew URL\(|\bURL\.(?:canParse|parse)\(/, urlParsers],
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

test('each decision has a number of its own', () => {
  const names = readdirSync(path.resolve(import.meta.dirname, '../../../docs/decisions'))
  const numbers = names.map((name) => name.slice(0, 4))
  expect(numbers.filter((number, at) => numbers.indexOf(number) !== at)).toEqual([])
})

test('no file is too long, tests and the other packages included', () => {
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

test('no feature names a partner: a new one is a file in partners and a line in its list', () => {
  const names = [...routingAdapters, ...offRampAdapters].map(({ name }) => name)
  expect(names).toEqual(expect.arrayContaining(['relay', 'cctp', 'lifi', 'bridge', 'sandbox']))
  const named = new RegExp(`(['"\`/])(?:${names.join('|')})(?:\\1|/)`)
  const importing = /from '(?:\.\.\/)+partners\/(?!(?:\w+\/port|errors)\.ts')/
  expect(["partner === 'bridge'", '`/partners/bridge/webhooks`'].every((text) => named.test(text))).toBe(true)
  const found = files.filter(
    ({ name, text }) => name.startsWith('features/') && (named.test(text) || importing.test(text)),
  )
  expect(found.map(({ name }) => name)).toEqual([])
})

test('the facts of a network stand in its catalogue: no other file lists networks', () => {
  const names = networks.map(({ name }) => name).filter((name) => !['base', 'base-sepolia', 'tempo'].includes(name))
  const ids = networks.map(({ chainId }) => String(chainId)).filter((id) => id.length > 3)
  const named = new RegExp(`(['"])(?:${names.join('|')})\\1|\\b(?<!eip155:)(?:${ids.join('|')})\\b`)
  expect(
    ["['polygon', 7]", 'chainId === 42_161'].every((text) => named.test(text.replace(/(?<=\d)_(?=\d)/g, ''))),
  ).toBe(true)
  const listing = globSync('packages/{protocol,server,sdk,cli,mcp,dashboard}/src/**/*.{ts,tsx}', { cwd: root }).filter(
    (name) =>
      !/\.test\.ts$|\/generated\//.test(name) &&
      readFileSync(path.join(root, name), 'utf8')
        .split('\n')
        .some((line) => !/^ *(?:\*|\/\*\*|\/\/)/.test(line) && named.test(line.replace(/(?<=\d)_(?=\d)/g, ''))),
  )
  // The coins of version 1, which another API fixes.
  expect(listing.sort()).toEqual([
    'packages/protocol/src/networks.ts',
    'packages/server/src/features/wallets/legacy/coins.ts',
  ])
})

test('dependencies are complete when a feature is built: no file assigns a callback later', () => {
  const wiring = files.filter(
    ({ name }) => ['boot.ts', 'deps.ts', 'modules.ts'].includes(name) || /^features\/\w+\/index\.ts$/.test(name),
  )
  expect(wiring.length).toBeGreaterThan(15)
  const patched = wiring.filter(({ text }) => /^ *let \w+ = \(?\{?.*=> undefined/m.test(text))
  expect(patched.map(({ name }) => name)).toEqual([])
})

test('background work runs by one loop: no other file repeats work until it is stopped', () => {
  const waiting = /while \(!?[^\n]*\.aborted\)[^}]*\bpause\(|for \(;;\) \{[^}]*\bpause\([^}]*\.aborted\b/
  const repeating = files.filter(({ name, text }) => name !== 'platform/work/loop.ts' && waiting.test(text))
  expect(repeating.map(({ name }) => name)).toEqual([])
})

/** Files in which something that outlives runs makes the cursors of a due list. A feature makes its others as ports, where it is built. */
const ofDueLists = [
  'features/approvals/decide.ts',
  'features/relayer/sign-planned.ts',
  'features/webhooks/delivery/worker.ts',
]

test('no run begins a due list again: its cursors outlive the run, or those behind a long backlog never get a share', () => {
  const making = files.filter(({ text }) => /: DueCursors = new Map\(|\bcursors: new Map\(/.test(text))
  const isPort = /\/(index|real-ports)\.ts$/
  expect(making.map(({ name }) => name).filter((name) => !isPort.test(name))).toEqual(ofDueLists)
})

test('work that is repeated until none is left sees that the process stops: `repeatWhile` repeats it', () => {
  const repeating = files.filter(({ text }) => /\bwhile \([^\n]*\bawait\b[^\n]*\);$/m.test(text))
  expect(repeating.map(({ name }) => name)).toEqual([])
})

/** Files whose modules keep state, which all services of one process then share, and the reason why that is harmless. */
const sharedState: ReadonlyMap<string, string> = new Map([
  ['main.ts', 'the program itself: it runs once in a process'],
  ['files/hash-worker.ts', 'the program of a thread: each thread has its own'],
  ['platform/random.ts', 'random bytes that nobody has used yet'],
  ['platform/undici.ts', 'the function that loads the parts of a package'],
  ['platform/memory.ts', 'the garbage collector, of which a process has one'],
  ['platform/db/db.ts', 'names computed from constant texts'],
  ['platform/db/statement.ts', 'texts computed from constant parts'],
  ['platform/db/migrate.ts', 'the migrations in the files of this build'],
])

/** Modules of the other packages that keep state, which all callers in a process share, and why that is harmless. */
const sharedByCallers: ReadonlyMap<string, string> = new Map([
  ['sdk/src/middleware/discovery.ts', 'how a handler sells its route, for as long as the handler lives'],
  ['sdk/src/middleware/attach.ts', 'what a request of the framework belongs to, for as long as the request lives'],
  ['sdk/src/middleware/responses.ts', 'texts computed from a challenge, for as long as the challenge lives'],
  ['sdk/src/pay/payment.ts', 'what a response belongs to, for as long as the response lives'],
  ['mcp/src/documents.ts', 'the documents in the files of this build'],
  ['devnet/src/demo.ts', 'the program itself: it runs once in a process'],
  ['devnet/src/faucet.ts', 'the order of the transactions of the one dev account of a chain'],
  ['devnet/src/child-guard.ts', 'the children of the process, and its signals'],
])

/** Variables, collections that are filled later, and what a factory makes, at the top level of a module. */
function stateOf(text: string): string[] {
  const assigned = [...text.matchAll(/^(?:export )?let (\w+)/gm)]
  const constants = [...text.matchAll(/^(?:export )?const (\w+)[^\n]*? =\s+((?:new|\[|batch|create).*)/gm)].filter(
    ([, name, value = '']) => {
      if (/^new Weak(Map|Set)\b|^(batch(ByDb)?|create[A-Z]\w*)\b[^;]*\(/.test(value)) return true
      const isCollection = /^new (Map|Set)\b|^\[/.test(value)
      return isCollection && new RegExp(`\\b${name}\\.(set|add|push|delete|clear)\\(`).test(text)
    },
  )
  return [...assigned, ...constants].flatMap(([, name]) => name ?? [])
}

test.each([
  'let calls = 0',
  'export let calls = 0',
  'const seen = new WeakMap<object, string>()',
  'const seen = new Map<string, string>()\nseen.set(key, value)',
  'const seen: Map<string, () => void> = new Map()\nseen.set(key, value)',
  'const seen: string[] = []\nseen.push(key)',
  'const seen =\n  new Set()\nseen.add(key)',
  'export const find = batchByDb<Key, Row>({ itemsMax: 1 }, list)',
])('%s is state of a module', (text) => {
  expect(stateOf(text)).toHaveLength(1)
})

test('two services in one process share nothing: no module keeps state, except for the listed ones', () => {
  const keeping = files.filter(({ text }) => stateOf(text).length > 0).map(({ name }) => name)
  expect(keeping.toSorted()).toEqual([...sharedState.keys()].toSorted())
})

test('two callers in one process share nothing of the other packages either, except for the listed modules', () => {
  const packages = path.resolve(import.meta.dirname, '../..')
  const names = globSync('{protocol,sdk,cli,mcp,devnet}/src/**/*.ts', { cwd: packages }).filter(
    (name) => !name.includes('/generated/') && !name.endsWith('.test.ts'),
  )
  expect(names.length).toBeGreaterThan(250)
  const keeping = names.filter((name) => stateOf(readFileSync(path.join(packages, name), 'utf8')).length > 0)
  expect(keeping.toSorted()).toEqual([...sharedByCallers.keys()].toSorted())
})

/** The patterns that a pattern with braces stands for. */
function alternatives(pattern: string): readonly string[] {
  const braces = /\{([^{}]*)\}/.exec(pattern)
  if (braces === null) return [pattern]
  return (braces[1] ?? '').split(',').flatMap((one) => alternatives(pattern.replace(braces[0], one)))
}

test('each test file that vitest.config.ts names exists', () => {
  const config = readFileSync(path.join(root, 'vitest.config.ts'), 'utf8')
  const named = [...config.matchAll(/'([^']+\.test\.ts)'/g)].flatMap(([, pattern = '']) => alternatives(pattern))
  expect(named.length).toBeGreaterThan(100)
  expect(named.filter((pattern) => globSync(pattern, { cwd: root }).length === 0)).toEqual([])
})
