import { readFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { faultsAsText, longWaits, readConfig } from './config.ts'
import { watchReads } from './settings.ts'

const env = {
  DATABASE_URL: 'postgres://purser@db.test/purser',
  DATABASE_DURABILITY: 'managed',
  BASE_URL: 'https://pay.test',
  DASHBOARD_URL: 'https://app.test',
  KEY_ENCRYPTION_KEY: Buffer.alloc(32, 1).toString('base64'),
  FILES_DIR: '/tmp/files',
}

function ttls(more: Record<string, string>) {
  const config = readConfig({ ...env, ...more }, [], [])
  return 'faults' in config ? faultsAsText(config.faults) : config.vaultTtls
}

test('the configuration overrides how long vaults of a plan live', () => {
  expect(ttls({ VAULT_TTL_HOBBY: '30m/24h', VAULT_TTL_ENTERPRISE: '7d/unlimited' })).toEqual({
    hobby: { secondsDefault: 1_800, secondsMax: 86_400 },
    enterprise: { secondsDefault: 604_800, secondsMax: -1 },
  })
  expect(ttls({})).toEqual({})
})

test.each(['24h', '24h/', '/24h', '2d/1d', '1w/2w', 'unlimited/unlimited', '24h/7d/9d', '0m/1h'])(
  'vault times of %j are a fault, and no default replaces them',
  (value) => {
    expect(ttls({ VAULT_TTL_PRO: value })).toContain('VAULT_TTL_PRO: is not usable')
  },
)

test('durability must be stated where live is served, and nowhere else', () => {
  const { DATABASE_DURABILITY: _, ...unstated } = env
  const durabilityOf = (more: Record<string, string>) => {
    const config = readConfig({ ...unstated, ...more }, [], [])
    return 'faults' in config ? config.faults.map(({ name, fault }) => `${name} ${fault}`) : config.databaseDurability
  }
  expect(durabilityOf({})).toEqual(['DATABASE_DURABILITY is missing'])
  expect(durabilityOf({ ENVIRONMENTS: 'test' })).toBeUndefined()
  expect(durabilityOf({ DATABASE_DURABILITY: 'yes' })).toEqual(['DATABASE_DURABILITY is not usable'])
  expect(durabilityOf({ DATABASE_DURABILITY: 'synchronous' })).toBe('synchronous')
})

const faultsOf = (more: Record<string, string>, networks: readonly string[] = ['base', 'base-sepolia']) => {
  const config = readConfig({ ...env, ...more }, [], networks)
  return 'faults' in config ? config.faults.map(({ name, fault, how }) => `${name} ${fault}: ${how}`) : []
}

test.each([
  ['SETLE_WAIT_MS', 'SETTLE_WAIT_MS'],
  ['SETTLE_WAIT_SM', 'SETTLE_WAIT_MS'],
  ['TRUST_PROXYS', 'TRUST_PROXY'],
  ['SMTP_FORM', 'SMTP_FROM'],
  ['RPC_URL_BASE_SEPOLA', 'RPC_URL_BASE_SEPOLIA'],
])('the misspelled setting %s is a fault that names %s', (misspelled, meant) => {
  expect(faultsOf({ [misspelled]: '1' })).toEqual([`${misspelled} is not a setting: did you mean ${meant}?`])
})

test('a node or an explorer of an unknown network is a fault; variables of other programs are none', () => {
  expect(faultsOf({ RPC_URL_SEPOLIA: 'https://node.test' })).toEqual([
    'RPC_URL_SEPOLIA names no known network: use one of RPC_URL_BASE, RPC_URL_BASE_SEPOLIA',
  ])
  expect(faultsOf({ EXPLORER_URL_SEPOLIA: 'none' })).toEqual([
    'EXPLORER_URL_SEPOLIA names no known network: use one of EXPLORER_URL_BASE, EXPLORER_URL_BASE_SEPOLIA',
  ])
  const unknown = 'RPC_URL_BSC names no known network: use one of RPC_URL_BASE, RPC_URL_BASE_SEPOLIA'
  expect(faultsOf({ RPC_URL_BSC: 'https://node.test' })).toEqual([unknown])
  expect(faultsOf({ RPC_URL_BSC: 'https://node.test', RPC_URL_BASE: 'https://node.test' })).toEqual([unknown])
  const others = {
    HOME: '/root',
    HOSTNAME: 'pod-1',
    DATABASE_URI: 'postgres://other',
    LOGLEVEL_X: 'a',
    NODE_OPTIONS: '--x',
    SETTLE_SERVICE_HOST: '10.0.0.1',
    SETTLE_SERVICE_PORT_HTTP: '80',
    SETTLE_PORT: 'tcp://10.0.0.1:80',
    SETTLE_PORT_80_TCP_ADDR: '10.0.0.1',
  }
  expect(faultsOf(others)).toEqual([])
})

test('a misspelled setting beside the right one is a fault, and so is an unknown name that begins as only settings of this service do', () => {
  expect(faultsOf({ SETTLE_WAIT_MS: '1000', SETLE_WAIT_MS: '2000' })).toEqual([
    'SETLE_WAIT_MS is not a setting: SETTLE_WAIT_MS is set too: remove SETLE_WAIT_MS',
  ])
  expect(faultsOf({ SETTLE_ATTEMPTS: '3' })).toEqual([
    expect.stringMatching(/^SETTLE_ATTEMPTS is not a setting: use one of (SETTLE_\w+, )+SETTLE_\w+$/),
  ])
  expect(faultsOf({ VAULT_TTL_GOLD: '1d/2d' })).toEqual([
    'VAULT_TTL_GOLD is not a setting: use one of VAULT_TTL_HOBBY, VAULT_TTL_PRO, VAULT_TTL_ENTERPRISE',
  ])
})

test('the manual describes every setting that is read', () => {
  const { env: watched, names } = watchReads({
    ...env,
    KEY_ENCRYPTION: 'aws-kms',
    FILES_S3_ENDPOINT: 'https://s3.test',
  })
  readConfig(watched, [], ['base'])
  expect(names.size).toBeGreaterThan(50)
  const manual = ['operations', 'partners', 'screening', 'signing-in']
    .map((page) => readFileSync(path.resolve(import.meta.dirname, `../../../docs/${page}.md`), 'utf8'))
    .join('\n')
  expect([...names].filter((name) => !manual.includes(name))).toEqual([])
})

test('the explorer of a network is an address without its last slash, or none', () => {
  const urlsOf = (more: Record<string, string>) => {
    const config = readConfig({ ...env, ...more }, [], ['base', 'base-sepolia'])
    return 'faults' in config ? config.faults.map(({ name }) => name) : config.explorerUrls
  }
  expect(urlsOf({ EXPLORER_URL_BASE: 'https://scan.example/', EXPLORER_URL_BASE_SEPOLIA: 'none' })).toEqual({
    base: 'https://scan.example',
    'base-sepolia': null,
  })
  expect(urlsOf({ EXPLORER_URL_BASE: 'scan.example' })).toEqual(['EXPLORER_URL_BASE'])
})

test('waits that outlast the default timeout of clients are named, since a buyer may be charged whose server has given up', () => {
  const namesOf = (settleWaitMs: number, facilitatorWaitMs: number) =>
    longWaits({ settleWaitMs, facilitatorWaitMs }).map(({ setting }) => setting)
  const defaults = readConfig(env, [], [])
  if ('faults' in defaults) throw new Error(faultsAsText(defaults.faults))
  expect(longWaits(defaults)).toEqual([])
  expect(namesOf(29_000, 26_000)).toEqual([])
  expect(namesOf(29_001, 26_000)).toEqual(['SETTLE_WAIT_MS'])
  expect(namesOf(0, 80_000)).toEqual(['FACILITATOR_WAIT_MS'])
})
