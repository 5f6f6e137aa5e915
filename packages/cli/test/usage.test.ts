import { accessSync, constants, readFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { aSealer, reportItem, sealedBy } from '../../sdk/test/seal-stage.ts'
import { commands } from '../src/commands.ts'
import { aDirectory, program, purser, ran } from './stage.ts'

const manifest: { readonly version: string; readonly bin: Readonly<Record<string, string>> } = JSON.parse(
  readFileSync(new URL('../package.json', import.meta.url), 'utf8'),
)

test('npm starts the program by the name of purser', () => {
  expect(path.resolve(import.meta.dirname, '..', manifest.bin.purser ?? '')).toBe(program)
  expect(readFileSync(program, 'utf8')).toMatch(/^#!\/usr\/bin\/env node\n/)
  expect(() => accessSync(program, constants.X_OK)).not.toThrow()
})

test('help names every command, and the version is that of the package', async () => {
  const { code, stdout } = await purser(['--help'])
  expect(code).toBe(0)
  for (const { name, summary } of commands) expect(stdout).toContain(`${name}  ${summary}`)
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
  ['an option without its value', ['verify', 'a.json', '--keys'], /--keys/],
  ['an unknown format', ['verify', 'a.json', '--format', 'xml'], /--format is text or json/],
  ['no keys', ['verify', 'a.json'], /^Whose signature counts\?/],
  ['keys twice', ['verify', 'a.json', '--keys', 'jwks.json', '--from', 'https://pay.example.com'], /not both/],
  ['keys from an address that anybody can pose as', ['verify', 'a.json', '--from', 'http://pay.example.com'], /https/],
  ['keys that are not there', ['verify', 'a.json', '--keys', '/nowhere/jwks.json'], /cannot be read \(ENOENT\)/],
])('%s is not understood and ends with 2', async (_what, args, said) => {
  const { code, stdout, stderr } = await ran(args)
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  expect(stderr).toMatch(said)
  expect(stderr).not.toMatch(/\bat .*\.ts:\d/)
})

test('what cannot be read, or is no key set, ends with 2 and not with a verdict', async () => {
  const { put } = aDirectory()
  const file = put('proof.json', sealedBy(aSealer()))
  const keys = put('jwks.json', aSealer().jwks)
  const runs: readonly (readonly [RegExp, readonly string[]])[] = [
    [/is not a JSON Web Key Set\./, [file, '--keys', put('list.json', [])]],
    [/is not a JSON Web Key Set with an Ed25519 key/, [file, '--keys', file]],
    [/is not a JSON Web Key Set with an Ed25519 key/, [file, '--keys', put('empty.json', { keys: [] })]],
    [/ENOENT/, ['/nowhere/proof.json', '--keys', keys]],
    [/EISDIR/, [path.dirname(file), '--keys', keys]],
    [/^--file needs --item/, [file, '--keys', keys, '--file', file]],
  ]
  for (const [said, args] of runs) {
    const { code, stdout, stderr } = await ran(['verify', ...args])
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toMatch(said)
  }
})

test('content that cannot be read ends with 2', async () => {
  const { put } = aDirectory()
  const sealer = aSealer()
  const args = ['verify', put('proof.json', sealedBy(sealer)), '--keys', put('jwks.json', sealer.jwks)]
  const { code, stderr } = await purser([...args, '--item', reportItem.id, '--file', '/nowhere/report.json'])
  expect({ code, stderr }).toEqual({ code: 2, stderr: '/nowhere/report.json cannot be read (ENOENT).\n' })
})
