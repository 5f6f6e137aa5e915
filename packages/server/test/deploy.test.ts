import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { parseEnv } from 'node:util'
import { networks } from '@purser/protocol'
import { expect, test } from 'vitest'
import { readConfig } from '../src/config.ts'

const root = path.resolve(import.meta.dirname, '../../..')
const read = (file: string): string => readFileSync(path.join(root, file), 'utf8')
const example = () => parseEnv(read('deploy/purser.env.example')) as Record<string, string>
const compose = read('deploy/compose.yaml')
const unit = read('deploy/systemd/purser@.service')
const dockerfile = read('Dockerfile')

/** The settings of the unit: its lines of `Environment=NAME=value`. */
function settingsOfUnit(): Record<string, string> {
  return Object.fromEntries(
    [...unit.matchAll(/^Environment=([A-Z_]+)=(.+)$/gm)].map(([, name, value]) => [name, value]),
  )
}

test('the settings of systemd start the service in each role', () => {
  for (const role of ['api', 'work', 'all']) {
    const env = { ...example(), ...settingsOfUnit() }
    const config = readConfig(
      env,
      ['--role', role],
      networks.map(({ name }) => name),
    )
    expect(config).toMatchObject({ role, databaseUrl: env.DATABASE_URL, environments: ['test'] })
    expect(config).toMatchObject({ keyEncryption: { file: env.KEY_ENCRYPTION_KEY_FILE } })
  }
})

test('each setting of the example is one that the service reads and the manual describes', () => {
  const sources = globSync('packages/server/src/*.ts', { cwd: root }).map(read).join('\n')
  for (const name of Object.keys(example())) {
    expect([name, sources.includes(name.replace(/^RPC_URL_.*/, 'RPC_URL_'))]).toEqual([name, true])
    expect([name, read('docs/operations.md').includes(name)]).toEqual([name, true])
  }
})

test('the image has the files that its commands start, and its ports are those of the service', () => {
  const programs = [...`${dockerfile}${compose}${unit}`.matchAll(/packages\/server\/(?:src|dist)\/([\w/]+)\.[jt]s/g)]
  const started = new Set(programs.map(([, program]) => program))
  expect(started).toEqual(new Set(['main', 'admin/main']))
  for (const program of started) expect(read(`packages/server/src/${program}.ts`)).not.toBe('')
  const config = readConfig(
    { ...example(), ...settingsOfUnit() },
    [],
    networks.map(({ name }) => name),
  )
  if ('faults' in config) throw new Error(JSON.stringify(config.faults))
  expect(dockerfile).toContain(`EXPOSE ${config.port} ${config.metricsPort}`)
  expect(dockerfile).toContain(`http://127.0.0.1:${config.metricsPort}/healthz`)
  const pinned = (JSON.parse(read('package.json')) as { devDependencies: { node: string } }).devDependencies.node
  expect(dockerfile.match(/(?<=_BASE=)node:[\d.]+/g)).toEqual(Array(2).fill(`node:${pinned}`))
})

test('systemd waits longer for a stop than the service takes', () => {
  // STOP_DELAY_MS and the minute that requests under way may take.
  expect(Number(/TimeoutStopSec=(\d+)/.exec(unit)?.[1])).toBeGreaterThan(5 + 60)
})
