import { spawnSync } from 'node:child_process'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { aWorld, type Org, type World } from '../../server/test/world.ts'
import { optionOf } from '../src/commands/operations.ts'
import { commands, mainCommands } from '../src/commands.ts'
import { apiOperations } from '../src/generated/operations.ts'
import { aDirectory, purserOf, ran } from './stage.ts'

let world: World
let org: Org
beforeAll(async () => {
  world = await aWorld()
  org = await world.organisation('enterprise')
})
afterAll(() => world?.stop())

const call = (...args: readonly string[]) =>
  purserOf({ PURSER_API_KEY: org.testKey, PURSER_BASE_URL: world.base }, args)

async function json(...args: readonly string[]): Promise<unknown> {
  const { code, stdout, stderr } = await call(...args, '--format', 'json')
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  return JSON.parse(stdout)
}

test('every command has a name of its own, and no option of an operation hides one that each command has', () => {
  const names = commands.map(({ name }) => name)
  expect(new Set(names).size).toBe(names.length)
  const common = ['help', 'format', 'key', 'base-url', 'input', 'idempotency-key']
  for (const operation of apiOperations) {
    const options = operation.arguments.filter((argument) => argument.in !== 'path').map(({ name }) => optionOf(name))
    expect(
      options.filter((option) => common.includes(option)),
      operation.name,
    ).toEqual([])
    expect(new Set(options).size, operation.name).toBe(options.length)
  }
})

test('help lists operations by their first word', async () => {
  const { stdout } = await ran(['help', 'vaults'])
  for (const { name, summary } of commands.filter((command) => command.name.startsWith('vaults ')))
    expect(stdout).toMatch(new RegExp(`  ${name} +${summary.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')}\n`))
  expect(stdout).not.toContain('  wallets ')
  expect(await ran(['vaults', '--help'])).toMatchObject({ code: 0, stdout })
  expect((await ran(['--help'])).stdout).toMatch(/vaults \(\d+\)/)
})

test('a resource is created, read, listed, changed and deleted', async () => {
  const created = await json(
    'vaults',
    'create',
    '--description',
    'From the command line',
    '--ttl',
    '24h',
    '--metadata',
    '{"order":7}',
  )
  expect(created).toMatchObject({ description: 'From the command line', metadata: { order: 7 } })
  const { id } = created as { readonly id: string }
  expect(await json('vaults', 'get', id)).toMatchObject({ id })
  expect(await json('vaults', 'list')).toEqual([expect.objectContaining({ id })])
  expect(await json('vaults', 'documents', 'add', id, '--name', 'a', '--data', '{"a":[1,2]}')).toMatchObject({
    name: 'a',
  })
  expect(await call('vaults', 'delete', id)).toEqual({ code: 0, stdout: 'Done.\n', stderr: '' })
})

test('a list is filtered by a member of its metadata', async () => {
  expect(await json('transfers', 'list', '--metadata', '{"order":"none"}')).toEqual([])
  for (const metadata of ['{"a":"1","b":"2"}', '["a"]', 'null']) {
    const refused = await call('transfers', 'list', '--metadata', metadata)
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('metadata')])
  }
})

test('a list is a table of as many items as requested, from as many pages as needed', async () => {
  for (const name of ['one', 'two', 'three']) await json('vaults', 'create', '--description', name)
  const { stdout } = await call('vaults', 'list', '--limit', '2')
  const [head = '', ...rows] = stdout.trimEnd().split('\n')
  expect(head).toMatch(/^id +/)
  expect(rows).toHaveLength(2)
  expect(rows[0]).toContain('vlt_')
  expect(await json('vaults', 'list', '--limit', '2')).toHaveLength(2)
  expect((await call('webhooks', 'list')).stdout).toBe('There are none.\n')
})

test('the same idempotency key returns the first response', async () => {
  const once = () => json('vaults', 'create', '--description', 'once', '--idempotency-key', 'cli-1')
  expect(await once()).toEqual(await once())
})

test('the body can be a file', async () => {
  const { put } = aDirectory()
  const file = put('vault.json', { description: 'From a file', ttl: '24h' })
  expect(await json('vaults', 'create', '--input', `@${file}`, '--description', 'Overridden')).toMatchObject({
    description: 'Overridden',
  })
})

test('a refused request exits with 1 and shows the problem and the request', async () => {
  const { code, stderr } = await call('vaults', 'get', 'vlt_01h455vb4pex5vsknk084sn02q')
  expect(code).toBe(1)
  expect(stderr).toContain('Not Found')
  expect(stderr).toMatch(/req_/)
})

test.each<[string, readonly string[], RegExp]>([
  [
    'a required option that is missing',
    ['transfers', 'create', '--amount', '1'],
    /^--from-wallet-id, .*--to-token must be given\./,
  ],
  [
    'a number that is none',
    ['payments', 'challenge', '--count', 'ten', '--wallet-id', 'byw_1', '--price', '1'],
    /--count is a number/,
  ],
  [
    'a boolean of a name with an abbreviation',
    ['payments', 'challenge', '--accept-mpp', 'yes', '--wallet-id', 'byw_1', '--price', '1'],
    /--accept-mpp is true or false/,
  ],
  ['a boolean that is none', ['webhooks', 'update', 'wh_1', '--is-active', 'yes'], /--is-active is true or false/],
  ['a body that is no object', ['vaults', 'create', '--input', '[1]'], /^--input is a JSON object/],
  ['a file that is not there', ['vaults', 'create', '--input', '@/nowhere.json'], /cannot be read/],
  ['an id that leaves the path', ['vaults', 'get', '..'], /<id> must be given/],
  ['a positional that is missing', ['vaults', 'get'], /takes <id>/],
  ['a limit beyond all pages', ['vaults', 'list', '--limit', '10001'], /--limit must be a number/],
])('%s is refused before anything is sent', async (_, args, message) => {
  const { code, stderr } = await ran([...args, '--key', org.testKey, '--base-url', 'https://pay.example.com'])
  expect(code).toBe(2)
  expect(stderr).toMatch(message)
})

test('bash completes commands and their options', async () => {
  const { stdout: script } = await call('completion', 'bash')
  const complete = (...words: readonly string[]): readonly string[] => {
    const line = `COMP_WORDS=(purser ${words.map((word) => `'${word}'`).join(' ')}); COMP_CWORD=${words.length}; _purser; printf '%s\\n' "\${COMPREPLY[@]}"`
    return spawnSync('bash', ['-c', `${script}\n${line}`], { encoding: 'utf8' })
      .stdout.trim()
      .split('\n')
  }
  expect(complete('')).toEqual(expect.arrayContaining(['login', 'wallets', 'transfers']))
  expect(complete('wallets', 'master', 'pol')).toEqual(['policy'])
  expect(complete('transfers', 'create', '--to-')).toEqual(['--to-address', '--to-chain', '--to-token'])
  expect(complete('transfers', 'create', '--amount', '5', '--from-t')).toEqual(['--from-token'])
})

test('each shell has a script, and another is refused', async () => {
  for (const shell of ['bash', 'zsh', 'fish']) expect((await call('completion', shell)).stdout).toContain('purser')
  expect(await call('completion', 'tcsh')).toMatchObject({ code: 2 })
  expect(mainCommands.map(({ name }) => name)).toContain('completion')
})
