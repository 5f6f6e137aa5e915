import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type AwsKms, keyArn, startAwsKms } from '../../test/custody/aws-kms.ts'
import { awsKmsKeyEncryption } from './aws-kms.ts'

let kms: AwsKms

beforeAll(async () => {
  kms = await startAwsKms()
})
beforeEach(() => {
  kms.asked = []
  kms.answerOtherKey = false
  kms.trouble = 'none'
})
afterAll(() => kms.stop())

const open = () => awsKmsKeyEncryption({ keyArn, endpoint: kms.endpoint }, 'f'.repeat(32))

test('a data key comes back from the key service under the same associated data, and every request is signed', async () => {
  const dataKey = randomBytes(32)
  const wrapped = await open().wrap(dataKey, 'purser|org_a')
  expect(Buffer.from(wrapped).includes(dataKey)).toBe(false)
  expect(Buffer.from(await open().unwrap(wrapped, 'purser|org_a'))).toEqual(dataKey)
  expect(kms.asked).toEqual([
    { action: 'Encrypt', context: 'purser|org_a', signed: true },
    { action: 'Decrypt', context: 'purser|org_a', signed: true },
  ])
})

test('what was wrapped for one place, or changed, does not open, and the error holds nothing of it', async () => {
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

test('an answer for another key is refused', async () => {
  const wrapped = await open().wrap(randomBytes(32), 'purser|org_a')
  kms.answerOtherKey = true
  await expect(open().unwrap(wrapped, 'purser|org_a')).rejects.toThrow('another key')
})

const troubles: readonly (readonly [string, AwsKms['trouble']])[] = [
  ['cuts the connection', 'cut'],
  ['fails inside', { status: 500, type: 'KMSInternalException' }],
  ['is asked too often', { status: 400, type: 'ThrottlingException' }],
  ['gives no right any more', { status: 400, type: 'AccessDeniedException' }],
  ['has its key turned off', { status: 400, type: 'DisabledException' }],
]

test.each(troubles)(
  'a key service that %s is said to be unavailable, and nothing of what it said is shown',
  async (_, trouble) => {
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
  },
)
