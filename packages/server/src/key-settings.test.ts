import { expect, test } from 'vitest'
import { faultsAsText } from './config.ts'
import { readKeySettings } from './key-settings.ts'
import type { ConfigFault } from './platform/config-fault.ts'

const key = Buffer.alloc(32, 1).toString('base64')
const arn = 'arn:aws:kms:eu-central-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab'
const gcp = 'projects/acme/locations/europe-west3/keyRings/purser/cryptoKeys/kek'

function read(env: Record<string, string>) {
  const faults: ConfigFault[] = []
  const keys = readKeySettings(env, faults)
  return faults.length === 0 ? keys : faultsAsText(faults)
}

test.each([
  [{ KEY_ENCRYPTION_KEY_FILE: '/keys/kek' }, { file: '/keys/kek' }],
  [{ KEY_ENCRYPTION: 'file', KEY_ENCRYPTION_KEY_FILE: '/keys/kek', KEY_ENCRYPTION_KEY: key }, { file: '/keys/kek' }],
  [{ KEY_ENCRYPTION_KEY: key }, { base64: key }],
  [{ KEY_ENCRYPTION: 'aws-kms', AWS_KMS_KEY_ARN: arn }, { awsKms: { keyArn: arn } }],
  [
    { KEY_ENCRYPTION: 'aws-kms', AWS_KMS_KEY_ARN: arn, AWS_KMS_ENDPOINT: 'https://vpce.test' },
    { awsKms: { keyArn: arn, endpoint: 'https://vpce.test' } },
  ],
  [
    { KEY_ENCRYPTION: 'gcp-kms', GCP_KMS_KEY: gcp, GCP_CREDENTIALS_FILE: '/keys/account.json' },
    { gcpKms: { key: gcp, credentialsFile: '/keys/account.json' } },
  ],
])('%j configures one key', (env, first) => {
  expect(read(env)).toEqual({ first, also: [] })
})

test('keys that open data sealed earlier may be of any kind', () => {
  const env = {
    KEY_ENCRYPTION_KEY: key,
    KEY_ENCRYPTION_ALSO: `file:/keys/old, base64:${key},aws-kms:${arn},gcp-kms:${gcp}`,
  }
  expect(read(env)).toEqual({
    first: { base64: key },
    also: [{ file: '/keys/old' }, { base64: key }, { awsKms: { keyArn: arn } }, { gcpKms: { key: gcp } }],
  })
})

test.each([
  [{}, 'KEY_ENCRYPTION_KEY_FILE: is missing'],
  [{ KEY_ENCRYPTION: 'vault', KEY_ENCRYPTION_KEY: key }, 'KEY_ENCRYPTION: is not usable'],
  [{ KEY_ENCRYPTION: 'aws-kms', KEY_ENCRYPTION_KEY: key }, 'AWS_KMS_KEY_ARN: is missing'],
  [{ KEY_ENCRYPTION: 'aws-kms', AWS_KMS_KEY_ARN: 'alias/purser' }, 'AWS_KMS_KEY_ARN: is not usable'],
  [{ KEY_ENCRYPTION: 'aws-kms', AWS_KMS_KEY_ARN: arn.replace(':key/', ':alias/') }, 'AWS_KMS_KEY_ARN: is not usable'],
  [{ KEY_ENCRYPTION: 'gcp-kms' }, 'GCP_KMS_KEY: is missing'],
  [{ KEY_ENCRYPTION: 'gcp-kms', GCP_KMS_KEY: `${gcp}/cryptoKeyVersions/1` }, 'GCP_KMS_KEY: is not usable'],
  [{ KEY_ENCRYPTION_KEY: key, KEY_ENCRYPTION_ALSO: '/keys/old' }, 'KEY_ENCRYPTION_ALSO: is not usable'],
  [{ KEY_ENCRYPTION_KEY: key, KEY_ENCRYPTION_ALSO: 'aws-kms:alias/purser' }, 'KEY_ENCRYPTION_ALSO: is not usable'],
])('%j is a fault with a remedy, and no default replaces it', (env, fault) => {
  expect(read(env as Record<string, string>)).toContain(fault)
})

test('all faults are reported together, and none repeats a value, which may be a key', () => {
  const secret = Buffer.alloc(31, 7).toString('base64')
  const output = read({ KEY_ENCRYPTION_KEY: secret, KEY_ENCRYPTION_ALSO: `base64:${secret}` })
  expect(output).toContain('2 faults')
  expect(output).not.toContain(secret)
})
