import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type AwsKms, keyArn, startAwsKms } from '../../test/custody/aws-kms.ts'
import { awsKmsKeyEncryption } from './aws-kms.ts'

let kms: AwsKms

beforeAll(async () => {
  kms = await startAwsKms()
})
beforeEach(() => {
  kms.requested = []
  kms.answerOtherKey = false
  kms.trouble = 'none'
})
afterAll(() => kms.stop())

const open = () => awsKmsKeyEncryption({ keyArn, endpoint: kms.endpoint }, 'f'.repeat(32))

test('a data key can be unwrapped with the same associated data, and every request is signed', async () => {
  const dataKey = randomBytes(32)
  const wrapped = await open().wrap(dataKey, 'purser|org_a')
  expect(Buffer.from(wrapped).includes(dataKey)).toBe(false)
  expect(Buffer.from(await open().unwrap(wrapped, 'purser|org_a'))).toEqual(dataKey)
  expect(kms.requested).toEqual([
    { action: 'Encrypt', context: 'purser|org_a', signed: true },
    { action: 'Decrypt', context: 'purser|org_a', signed: true },
  ])
})

test('a wrapped key does not open with other associated data or after a change, and the error does not contain it', async () => {
  const dataKey = randomBytes(32)
  const wrapped = await open().wrap(dataKey, 'purser|org_a')
  await expect(open().unwrap(wrapped, 'purser|org_b')).rejects.toMatchObject({ name: 'InvalidCiphertextException' })
  const changed = Uint8Array.from(wrapped)
  changed[20] = (changed[20] ?? 0) ^ 1
  const error: unknown = await open()
    .unwrap(changed, 'purser|org_a')
    .catch((caught: unknown) => caught)
  expect(String(error)).toMatch(/InvalidCiphertext/)
  expect(String(error)).not.toContain(dataKey.toString('base64'))
})

test('an answer under another key is refused', async () => {
  const wrapped = await open().wrap(randomBytes(32), 'purser|org_a')
  kms.answerOtherKey = true
  await expect(open().unwrap(wrapped, 'purser|org_a')).rejects.toThrow('another key')
})

const troubles: readonly (readonly [string, AwsKms['trouble']])[] = [
  ['cuts the connection', 'cut'],
  ['has an internal error', { status: 500, type: 'KMSInternalException' }],
  ['throttles requests', { status: 400, type: 'ThrottlingException' }],
  ['denies access', { status: 400, type: 'AccessDeniedException' }],
  ['has disabled its key', { status: 400, type: 'DisabledException' }],
]

test.each(troubles)('a key service that %s is reported as unavailable, without its message', async (_, trouble) => {
  const wrapped = await open().wrap(randomBytes(32), 'purser|org_a')
  kms.trouble = trouble
  const wrap = (): Promise<Uint8Array> => open().wrap(randomBytes(32), 'purser|org_a')
  for (const ask of [wrap, () => open().unwrap(wrapped, 'purser|org_a')]) {
    const error: unknown = await ask().catch((caught: unknown) => caught)
    expect(error).toMatchObject({ code: 'custody-unavailable', entry: { status: 503 } })
    expect(String(error)).not.toContain(keyArn)
  }
  kms.trouble = 'none'
  expect((await open().unwrap(wrapped, 'purser|org_a')).length).toBe(32)
})
