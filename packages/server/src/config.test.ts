import { expect, test } from 'vitest'
import { faultsAsText, readConfig } from './config.ts'

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
