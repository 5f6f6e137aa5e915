import { accessSync, constants, readFileSync } from 'node:fs'
import path from 'node:path'
import { composeApiKey } from '@purser/protocol'
import { expect, test } from 'vitest'
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
  for (const word of ['--read-only', '--only', 'wallets,', 'PURSER_API_KEY', 'PURSER_BASE_URL', 'purser login'])
    expect(stdout).toContain(word)
})

test.each<[string, readonly string[], Readonly<Record<string, string>>, RegExp]>([
  ['an unknown option', ['--key', 'x'], env, /--key/],
  ['an argument', ['serve'], env, /serve/],
  ['a group without tools', ['--only', 'wallets,organisations'], env, /no tools organisations: .*vaults/],
  ['nobody who is logged in', [], {}, /Not logged in/],
  ['a key that was mistyped', [], { ...env, PURSER_API_KEY: `${env.PURSER_API_KEY}x` }, /missing or mistyped/],
  ['a service that anybody can pose as', [], { ...env, PURSER_BASE_URL: 'http://pay.example.com' }, /https/],
])('%s ends with 2 and a sentence, on stderr alone and without the key', async (_what, args, given, said) => {
  const { code, stdout, stderr } = await purserMcp(args, given)
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  expect(stderr).toMatch(said)
  expect(stderr).not.toMatch(/\bat .*\.ts:\d/)
  expect(stderr).not.toContain(env.PURSER_API_KEY)
})

test('with --read-only nothing that changes anything is offered or done, and --only leaves the other rooms out', async () => {
  const { client, call } = await anAgent(env, ['--read-only', '--only', 'transfers,vaults'])
  const { tools } = await client.listTools()
  expect(tools.length).toBeGreaterThan(5)
  expect(
    tools.filter(({ name, annotations }) => !annotations?.readOnlyHint || !/^(transfers|vaults)_/.test(name)),
  ).toEqual([])
  expect(await call('vaults_create')).toMatchObject({ isError: true, read: { type: 'unknown-tool' } })
})

test('the program ends when its client goes away', async () => {
  const { code, stdout, stderr } = await purserMcp([], env)
  expect({ code, stdout }).toEqual({ code: 0, stdout: '' })
  expect(stderr).toMatch(/^purser-mcp 0\.1\.0: \d+ tools, test environment of http:\/\/127\.0\.0\.1:9\n$/)
})
