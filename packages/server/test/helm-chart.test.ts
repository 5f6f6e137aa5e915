import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { networks } from '@purser/protocol'
import { Ajv } from 'ajv'
import { expect, test } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { readConfig } from '../src/config.ts'
import { renderTemplate } from './helm-template.ts'

const root = path.resolve(import.meta.dirname, '../../..')
const chart = path.join(root, 'deploy/helm/purser')
const read = (file: string): string => readFileSync(path.join(chart, file), 'utf8')

interface Env {
  readonly name: string
  readonly value?: string
  readonly valueFrom?: { readonly secretKeyRef: { readonly name: string; readonly key: string } }
}
interface Probe {
  readonly httpGet: { readonly path: string; readonly port: string }
}
interface Container {
  readonly args?: string[]
  readonly command?: string[]
  readonly env: Env[]
  readonly ports?: { readonly name: string; readonly containerPort: number }[]
  readonly livenessProbe?: Probe
  readonly readinessProbe?: Probe
  readonly securityContext: unknown
  readonly volumeMounts: { readonly name: string }[]
}
interface PodSpec {
  readonly containers: [Container]
  readonly volumes: { readonly name: string }[]
  readonly securityContext: unknown
  readonly terminationGracePeriodSeconds?: number
}
interface Resource {
  readonly kind: string
  readonly apiVersion: string
  readonly metadata: { readonly name: string; readonly annotations?: Record<string, string> | null }
  readonly spec?: {
    readonly selector?: Record<string, unknown>
    readonly template?: { readonly metadata: { readonly labels: Record<string, string> }; readonly spec: PodSpec }
  }
}
interface Values {
  readonly settings: Record<string, string>
  readonly [name: string]: unknown
}

const shipped = parse(read('values.yaml')) as Values
const everything: Values = {
  ...shipped,
  imagePullSecrets: [{ name: 'registry' }],
  secretSettings: [{ name: 'RPC_URL_BASE_SEPOLIA', secret: 'nodes', key: 'base-sepolia' }],
  ingress: { ...(shipped.ingress as object), enabled: true },
  networkPolicy: { ...(shipped.networkPolicy as object), enabled: true },
  serviceMonitor: { ...(shipped.serviceMonitor as object), enabled: true },
}
const isValid = new Ajv().compile(JSON.parse(read('values.schema.json')) as object)

function render(values: Values): Resource[] {
  return globSync('templates/*.yaml', { cwd: chart }).flatMap((file) => {
    const documents = [parseAllDocuments(renderTemplate(read(file), values, read('templates/_helpers.tpl')))].flat()
    expect(documents.flatMap((one) => ('errors' in one ? one.errors : []))).toEqual([])
    return documents.map((one) => ('toJS' in one ? (one.toJS() as Resource) : null)).filter((one) => one !== null)
  })
}

const kinds = (values: Values): string[] =>
  render(values)
    .map(({ kind }) => kind)
    .sort()

function pods(values: Values): [name: string, spec: PodSpec][] {
  return render(values).flatMap(({ metadata, spec }) => (spec?.template ? [[metadata.name, spec.template.spec]] : []))
}

test('the shipped values are valid, and wrong ones are refused', () => {
  expect([isValid(shipped), isValid.errors]).toEqual([true, null])
  expect([isValid(everything), isValid.errors]).toEqual([true, null])
  const { BASE_URL: _, ...withoutAddress } = shipped.settings
  for (const wrong of [
    { ...shipped, settings: withoutAddress },
    { ...shipped, settings: { ...shipped.settings, DATABASE_URL: 'postgres://purser:secret@db/purser' } },
    { ...shipped, settings: { ...shipped.settings, TRUST_PROXY: 1 } },
    { ...shipped, api: { replicas: 0, resources: {} } },
    { ...shipped, databaseUrl: 'postgres://db' },
  ])
    expect(isValid(wrong)).toBe(false)
})

test('each template renders to resources, and what is optional only where it is enabled', () => {
  const always = ['Deployment', 'Deployment', 'Job', 'PodDisruptionBudget', 'PodDisruptionBudget', 'Service']
  expect(kinds(shipped)).toEqual([...always, 'ServiceAccount'])
  const optional = ['Ingress', 'NetworkPolicy', 'Service', 'ServiceMonitor', 'ServiceAccount']
  expect(kinds(everything)).toEqual([...always, ...optional].sort())
  for (const { apiVersion, metadata } of render(everything))
    expect([apiVersion, metadata.name]).not.toContain(undefined)
})

test('the settings of each pod start the service in its role, and each is one that the service reads', () => {
  const sources = globSync('packages/server/src/*.ts', { cwd: root }).map((file) =>
    readFileSync(path.join(root, file), 'utf8'),
  )
  const secrets: Record<string, string> = {
    DATABASE_URL: 'postgres://purser@db/purser',
    KEY_ENCRYPTION_KEY: Buffer.alloc(32, 7).toString('base64'),
    RPC_URL_BASE_SEPOLIA: 'https://node.example.com',
  }
  for (const [name, { containers }] of pods(everything)) {
    const [{ env, args = [] }] = containers
    for (const one of env)
      expect([name, one.name, sources.join().includes(one.name.replace(/^RPC_URL_.*/, 'RPC_URL_'))]).toEqual([
        name,
        one.name,
        true,
      ])
    const set = Object.fromEntries(env.map((one) => [one.name, one.value ?? secrets[one.name] ?? 'no secret']))
    const config = readConfig(
      set,
      args,
      networks.map((network) => network.name),
    )
    expect([name, config]).toEqual([
      name,
      expect.objectContaining({ databaseUrl: secrets.DATABASE_URL, environments: ['test'] }),
    ])
    if (args.length > 0) expect(config).toMatchObject({ role: args[1], port: 4100, metricsPort: 9464 })
  }
})

test('secrets are passed by reference, and no key where a key service has it', () => {
  for (const [, { containers }] of pods(everything))
    for (const name of ['DATABASE_URL', 'KEY_ENCRYPTION_KEY'])
      expect(containers[0].env.find((one) => one.name === name)).toEqual({
        name,
        valueFrom: { secretKeyRef: { name: 'purser', key: name } },
      })
  const existingSecret = { ...(shipped.existingSecret as object), keyEncryptionKey: '' }
  for (const [, { containers }] of pods({ ...shipped, existingSecret }))
    expect(containers[0].env.map(({ name }) => name)).not.toContain('KEY_ENCRYPTION_KEY')
})

test('pods run as an ordinary user on a read-only file system, and every mount has its volume', () => {
  for (const values of [shipped, { ...shipped, filesClaim: '' }])
    for (const [, { containers, securityContext, volumes }] of pods(values)) {
      expect(securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: 1000 })
      expect(containers[0].securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      })
      expect(containers[0].volumeMounts.map(({ name }) => name)).toEqual(volumes.map(({ name }) => name))
    }
})

test('probes and stops fit the service: liveness reads no database, and a stop has time for requests under way', () => {
  for (const [name, { containers, terminationGracePeriodSeconds }] of pods(shipped)) {
    const [{ livenessProbe, readinessProbe, ports = [], command }] = containers
    if (command !== undefined) {
      expect(command).toEqual(['node', 'packages/server/dist/admin/main.js', 'migrate'])
      continue
    }
    expect(terminationGracePeriodSeconds).toBeGreaterThan(5 + 60)
    expect(livenessProbe?.httpGet).toEqual({ path: '/healthz', port: 'metrics' })
    const ready = name.endsWith('api') ? { path: '/readyz', port: 'http' } : { path: '/healthz', port: 'metrics' }
    expect(readinessProbe?.httpGet).toEqual(ready)
    expect(ports.map((port) => port.name)).toContain(ready.port)
  }
})

test('the migration runs before an installation and before an upgrade', () => {
  const job = render(shipped).find(({ kind }) => kind === 'Job')
  expect(job?.metadata.annotations).toMatchObject({ 'helm.sh/hook': 'pre-install,pre-upgrade' })
})
