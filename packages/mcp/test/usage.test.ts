import { accessSync, constants, readFileSync } from 'node:fs'
import path from 'node:path'
import { composeApiKey } from '@purser/protocol'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { anAgent, program, purserMcp } from './stage.ts'

const manifest: { readonly version: string; readonly bin: Readonly<Record<string, string>> } = JSON.parse(
  readFileSync(new URL('../package.json', import.meta.url), 'utf8'),
)
/** Well formed, and nobody's. */
const env = { PURSER_API_KEY: composeApiKey('test', new Uint8Array(32)), PURSER_BASE_URL: 'http://127.0.0.1:9' }

test('npm starts the program by the name of purser-mcp', () => {
  expect(path.resolve(import.meta.dirname, '..', manifest.bin['purser-mcp'] ?? '')).toBe(program)
  expect(readFileSync(program, 'utf8')).toMatch(/^#!\/usr\/bin\/env node\n/)
  expect(() => accessSync(program, constants.X_OK)).not.toThrow()
})

test('help and version are answered without a key', async () => {
  expect(await purserMcp(['--version'])).toEqual({ code: 0, stdout: `${manifest.version}\n`, stderr: '' })
  const { code, stdout } = await purserMcp(['--help'])
  expect(code).toBe(0)
  for (const word of [
    '--allow-changes',
    '--allow-money',
    '--only',
    'wallets,',
    'PURSER_API_KEY',
    'PURSER_BASE_URL',
    'purser login',
  ])
    expect(stdout).toContain(word)
})

test.each<[string, readonly string[], Readonly<Record<string, string>>, RegExp]>([
  ['an unknown option', ['--key', 'x'], env, /--key/],
  ['an argument', ['serve'], env, /serve/],
  [
    'a group without tools',
    ['--only', 'wallets,organisations'],
    env,
    /Unknown tool group organisations\. Groups: .*vaults/,
  ],
  ['proxies without HTTP', ['--proxies', '1'], env, /for --http/],
  ['nobody who is logged in', [], {}, /Not logged in/],
  ['a key that was mistyped', [], { ...env, PURSER_API_KEY: `${env.PURSER_API_KEY}x` }, /missing or mistyped/],
  ['a service that anybody can pose as', [], { ...env, PURSER_BASE_URL: 'http://pay.example.com' }, /https/],
])('%s ends with 2 and a sentence, on stderr alone and without the key', async (_what, args, given, expected) => {
  const { code, stdout, stderr } = await purserMcp(args, given)
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  expect(stderr).toMatch(expected)
  expect(stderr).not.toMatch(/\bat .*\.ts:\d/)
  expect(stderr).not.toContain(env.PURSER_API_KEY)
})

const namesOf = async (args: readonly string[]) => {
  const { client } = await anAgent(env, args)
  const { tools } = await client.listTools()
  return { client, tools, names: tools.map(({ name }) => name) }
}

test('only what changes nothing is offered unless an option allows more, and --only leaves other groups out', async () => {
  const { client, tools, names } = await namesOf([])
  expect(tools.filter(({ annotations }) => annotations?.readOnlyHint !== true)).toEqual([])
  expect(names).toContain('discover')
  // A token of English and JSON has about four characters.
  expect(JSON.stringify(tools).length / 4, 'tokens of a model').toBeLessThan(8_000)
  const code = (params: Record<string, unknown>) =>
    client.request({ method: 'tools/call', params }, z.unknown()).catch((error: unknown) => Object(error).code)
  expect(await code({ name: 'transfers_create', arguments: {} })).toBe(-32_602)
  expect(await code({ name: 'vaults_get', arguments: null })).toBe(-32_602)
  const changing = (await namesOf(['--allow-changes', '--only', 'transfers,vaults,wallets'])).names
  expect(changing.filter((name) => !/^(transfers|vaults|wallets)_/.test(name))).toEqual([])
  expect(changing).toContain('vaults_create')
  expect(changing).not.toContain('transfers_create')
  const paying = (await namesOf(['--allow-money', '--only', 'transfers,vaults,wallets'])).names
  expect(paying).toEqual(expect.arrayContaining(['pay_and_fetch', 'transfers_create']))
  expect(paying).not.toContain('vaults_create')
})

test('the program ends when its client goes away', async () => {
  const { code, stdout, stderr } = await purserMcp([], env)
  expect({ code, stdout }).toEqual({ code: 0, stdout: '' })
  expect(stderr).toMatch(/^purser-mcp 0\.1\.0: \d+ tools, test environment of http:\/\/127\.0\.0\.1:9\n$/)
})
