import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { commands } from '../src/admin/commands.ts'

const root = path.resolve(import.meta.dirname, '../../..')
const read = (file: string): string => readFileSync(path.join(root, file), 'utf8')
const guides = ['docs/runbooks.md', 'docs/operations.md']
const found = (pattern: RegExp): [file: string, name: string][] =>
  guides.flatMap((file) => [...read(file).matchAll(pattern)].map(([, name = '']): [string, string] => [file, name]))
const sources = globSync('packages/server/src/**/*.ts', { cwd: root }).map(read).join('\n')

test('each command of the guides is one of the program, with options that it has', () => {
  const named = found(/purser ((?:admin [a-z]|keys [a-z]|migrate)[^`\n#]*)/g)
  expect(named.length).toBeGreaterThan(10)
  for (const [file, line] of named) {
    const words = line.replace(/^admin /, '').trim()
    const known = commands.find(({ name }) => words === name || words.startsWith(`${name} `))
    if (known === undefined) expect([file, line]).toBe('a command')
    for (const [, option = ''] of line.matchAll(/--([a-z-]+)/g))
      expect([file, line, Object.keys(known?.options ?? {})]).toEqual([file, line, expect.arrayContaining([option])])
  }
})

test('each setting of the runbooks is described in operations, or is one of the compose file and its scripts', () => {
  const deployed = globSync('deploy/**/*.{yaml,sh}', { cwd: root }).map(read).join('\n')
  const described = `${read('docs/operations.md')}${deployed}`
  const named = found(/`\$?([A-Z][A-Z0-9_]{3,})(?:=[^`]*)?`/g).filter(([file]) => file === 'docs/runbooks.md')
  expect(named.length).toBeGreaterThan(8)
  // Of the guide's own commands.
  for (const [, name] of named.filter(([, one]) => !['BACKUPS', 'PGDATA', 'SIGTERM'].includes(one)))
    expect([name, new RegExp(`\\b${name}\\b`).test(described)]).toEqual([name, true])
})

test('each metric and each line of readiness that the guides name is written by the service', () => {
  const named = found(/`(purser_[a-z_]+)[`{]/g)
  expect(named.length).toBeGreaterThan(10)
  for (const [file, name] of named)
    expect([file, name, sources.includes(name.replace(/^purser_/, ''))]).toEqual([file, name, true])
  for (const name of ['standby-missing', 'confirmed', 'behind'])
    expect([name, sources.includes(`'${name}'`)]).toEqual([name, true])
})

test('each service and volume of a compose command is in the compose file', () => {
  const compose = parse(read('deploy/compose.yaml'), { merge: true }) as Record<'services' | 'volumes', object>
  const lines = found(/(docker compose -f deploy\/compose\.yaml [^`]+)`/g)
  expect(lines.length).toBeGreaterThan(4)
  const words = ['docker', 'compose', 'up', 'run', 'exec', 'stop', 'rm', 'kill', 'psql', 'postgres', 'HUP']
  for (const [file, line] of lines)
    for (const word of line.split(/\s+/).filter((one) => /^[\w-]+$/.test(one) && !one.startsWith('-')))
      if (!words.includes(word)) expect([file, line, word, word in compose.services]).toEqual([file, line, word, true])
  for (const [, volume] of found(/docker volume rm purser_([\w-]+)/g)) expect(compose.volumes).toHaveProperty(volume)
})
