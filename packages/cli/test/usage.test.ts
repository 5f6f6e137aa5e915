import { accessSync, constants, readFileSync } from 'node:fs'
import path from 'node:path'
import { composeApiKey } from '@purser/protocol'
import { expect, test } from 'vitest'
import { aSealer, reportItem, sealedBy } from '../../sdk/test/seal-stage.ts'
import { commands, mainCommands } from '../src/commands.ts'
import { aDirectory, program, purser, ran } from './stage.ts'

/** Well formed, and nobody's. */
const anApiKey = composeApiKey('test', new Uint8Array(32))
const someKey = ['--key', anApiKey, '--base-url', 'https://pay.example.com']

const manifest: { readonly version: string; readonly bin: Readonly<Record<string, string>> } = JSON.parse(
  readFileSync(new URL('../package.json', import.meta.url), 'utf8'),
)

test('npm starts the program by the name of purser', () => {
  expect(path.resolve(import.meta.dirname, '..', manifest.bin.purser ?? '')).toBe(program)
  expect(readFileSync(program, 'utf8')).toMatch(/^#!\/usr\/bin\/env node\n/)
  expect(() => accessSync(program, constants.X_OK)).not.toThrow()
})

test('help names every main command, and the version is that of the package', async () => {
  const { code, stdout } = await purser(['--help'])
  expect(code).toBe(0)
  const shown = stdout.split('\n')
  for (const { name, summary } of mainCommands)
    expect(shown.filter((line) => line.startsWith(`  ${name} `) && line.endsWith(`  ${summary}`))).toHaveLength(1)
  expect(await purser(['--version'])).toEqual({ code: 0, stdout: `${manifest.version}\n`, stderr: '' })
})

test.each(commands.map(({ name }) => name))('the help of %s names its arguments and every option', async (name) => {
  const { code, stdout } = await ran([...name.split(' '), '--help'])
  expect(code).toBe(0)
  const command = commands.find((known) => known.name === name)
  for (const word of [...(command?.positionals ?? []), ...Object.keys(command?.options ?? {}), '--format'])
    expect(stdout).toContain(word)
})

test.each<[string, readonly string[], RegExp]>([
  ['nothing', [], /^usage: purser/],
  ['an unknown command', ['verfy'], /^There is no command verfy\./],
  ['a word that every object has', ['constructor'], /^There is no command constructor\./],
  ['a command of the operator', ['admin', 'create-key'], /purser-admin/],
  ['no proof', ['verify', '--keys', 'jwks.json'], /takes <proof\.json>/],
  ['two proofs', ['verify', 'a.json', 'b.json', '--keys', 'jwks.json'], /takes <proof\.json>/],
  ['an unknown option', ['verify', 'a.json', '--key', 'jwks.json'], /--key/],
  [
    'the option for JSON of other programs',
    ['verify', 'a.json', '--json'],
    /^Unknown option '--json'\. For JSON give --format json\.$/m,
  ],
  ['an option without its value', ['verify', 'a.json', '--keys'], /--keys/],
  ['an unknown format', ['verify', 'a.json', '--format', 'xml'], /--format is text or json/],
  ['no keys', ['verify', 'a.json'], /^No trusted keys/],
  ['keys twice', ['verify', 'a.json', '--keys', 'jwks.json', '--from', 'https://pay.example.com'], /not both/],
  ['keys from an address that anybody can pose as', ['verify', 'a.json', '--from', 'http://pay.example.com'], /https/],
  ['half a command', ['events'], /^There is no command events\.\n\nusage: [\s\S]*events resend/],
  ['another half', ['events', 'delete'], /^There is no command events delete\./],
  ['an event that does not exist', ['trigger', 'vault.sealled'], /^There is no event type vault\.sealled\./],
  ['nothing to trigger', ['trigger'], /either an event type or --list/],
  ['an event and a list', ['trigger', 'vault.sealed', '--list'], /either an event type or --list/],
  ['a flag with a value', ['trigger', '--list=all'], /--list/],
  ['an id that is none', ['events', 'get', 'wh_1'], /is not an event id/],
  ['a limit that is no number', ['events', 'list', '--limit', 'all'], /--limit must be a number from 1 to/],
  [
    'a forward address that is none',
    ['listen', '--forward-to', 'localhost:3000', ...someKey],
    /is not a URL that events/,
  ],
  [
    'a forward address with a password',
    ['listen', '--forward-to', 'http://a:b@c/', ...someKey],
    /is not a URL that events/,
  ],
  ['a file to forward to', ['listen', '--forward-to', 'file:///etc/passwd', ...someKey], /is not a URL that events/],
  ['an event that cannot be listened to', ['listen', '--events', 'vault.sealed,x'], /^There is no event type x\./],
  ['nobody who is logged in', ['events', 'list'], /^Not logged in\./],
  ['a key without a service', ['events', 'list', ...someKey.slice(0, 2)], /^No service address/],
  ['a service without a key', ['events', 'list', ...someKey.slice(2)], /^No API key\./],
  ['a key that was mistyped', ['events', 'list', '--key', `${anApiKey}x`, ...someKey.slice(2)], /missing or mistyped/],
  ['a service that anybody can pose as', ['events', 'list', '--base-url', 'http://pay.example.com'], /https/],
  ['no service to log in to', ['login'], /^No service address/],
  ['keys that are not there', ['verify', 'a.json', '--keys', '/nowhere/jwks.json'], /cannot be read \(ENOENT\)/],
])('%s is not understood and ends with 2', async (_what, args, expected) => {
  const { code, stdout, stderr } = await ran(args)
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  expect(stderr).toMatch(expected)
  expect(stderr).not.toMatch(/\bat .*\.ts:\d/)
})

test('help of one command is that command’s, however it is requested', async () => {
  for (const { name } of commands) {
    const words = name.split(' ')
    expect((await ran(['help', ...words])).stdout).toBe((await ran([...words, '--help'])).stdout)
  }
  expect((await ran(['help', 'verfy'])).code).toBe(2)
})

test('no faulty run says a key, and a program reads why in JSON', async () => {
  const args = ['events', 'list', '--key', `${anApiKey}x`, '--base-url', 'https://pay.example.com']
  const [people, program] = [await ran(args), await ran([...args, '--format', 'json'])]
  expect(people.stderr + program.stdout).not.toContain(anApiKey)
  expect({ code: program.code, ...JSON.parse(program.stdout) }).toEqual({
    code: 2,
    error: { detail: people.stderr.trim() },
  })
})

test('what cannot be read, or is no key set, ends with 2 and not with a verdict', async () => {
  const { put } = aDirectory()
  const file = put('proof.json', sealedBy(aSealer()))
  const keys = put('jwks.json', aSealer().jwks)
  const runs: readonly (readonly [RegExp, readonly string[]])[] = [
    [/is not a JSON Web Key Set\./, [file, '--keys', put('list.json', [])]],
    [/not a JSON Web Key Set with an Ed25519 signature key/, [file, '--keys', file]],
    [/not a JSON Web Key Set with an Ed25519 signature key/, [file, '--keys', put('empty.json', { keys: [] })]],
    [/ENOENT/, ['/nowhere/proof.json', '--keys', keys]],
    [/EISDIR/, [path.dirname(file), '--keys', keys]],
    [/^--file needs --item/, [file, '--keys', keys, '--file', file]],
  ]
  for (const [expected, args] of runs) {
    const { code, stdout, stderr } = await ran(['verify', ...args])
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toMatch(expected)
  }
})

test('content that cannot be read ends with 2', async () => {
  const { put } = aDirectory()
  const sealer = aSealer()
  const args = ['verify', put('proof.json', sealedBy(sealer)), '--keys', put('jwks.json', sealer.jwks)]
  const { code, stderr } = await purser([...args, '--item', reportItem.id, '--file', '/nowhere/report.json'])
  expect({ code, stderr }).toEqual({ code: 2, stderr: '/nowhere/report.json cannot be read (ENOENT).\n' })
})
