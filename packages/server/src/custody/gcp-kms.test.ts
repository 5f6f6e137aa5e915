import { createCipheriv, createDecipheriv, generateKeyPairSync, randomBytes, verify } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import { instantOf } from '../platform/clock.ts'
import { createOutbound } from '../platform/outbound.ts'
import { crc32c, gcpKmsKeyEncryption } from './gcp-kms.ts'

const key = 'projects/acme/locations/europe-west3/keyRings/purser/cryptoKeys/kek'
const inside = randomBytes(32)
const account = generateKeyPairSync('rsa', { modulusLength: 2048 })
const email = 'purser@acme.iam.gserviceaccount.com'
const directory = mkdtempSync(path.join(tmpdir(), 'gcp-'))
const credentialsFile = path.join(directory, 'account.json')
const Requested = z.record(z.string(), z.string())

let server: Server
let endpoint: string
let nowMs = Date.parse('2026-11-22T00:00:00Z')
let requested: { readonly url: string; readonly body: Record<string, string>; readonly bearer: string }[]
let change: (response: Record<string, unknown>) => Record<string, unknown>
let metadataRequested: number

/** Cloud KMS and the metadata server, as in their REST references. */
beforeAll(async () => {
  const pem = account.privateKey.export({ type: 'pkcs8', format: 'pem' })
  const file = { type: 'service_account', private_key_id: 'kid-1', private_key: pem, client_email: email }
  writeFileSync(credentialsFile, JSON.stringify(file))
  server = createServer(async (request, response) => {
    const answer = await answerTo(request)
    response.statusCode = answer === undefined ? 400 : 200
    response.end(JSON.stringify(answer ?? { error: { code: 400, status: 'INVALID_ARGUMENT' } }))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
beforeEach(() => {
  requested = []
  metadataRequested = 0
  change = (response) => response
})
afterAll(() => {
  server.close()
  rmSync(directory, { recursive: true })
})

function open(by: 'account' | 'machine' = 'account') {
  const credentials = by === 'account' ? { credentialsFile } : { metadataUrl: endpoint }
  return gcpKmsKeyEncryption(
    { key, endpoint, ...credentials },
    { outbound: createOutbound(), clock: { now: () => instantOf(nowMs) }, fingerprint: 'f'.repeat(32) },
  )
}

test('CRC-32C is that of RFC 3720', () => {
  expect(crc32c(Buffer.from('123456789'))).toBe(0xe3069283)
  expect(crc32c(Buffer.alloc(32))).toBe(0x8a9136aa)
  expect(crc32c(Buffer.alloc(32, 0xff))).toBe(0x62a8ab43)
})

test('a data key can be unwrapped, and both requests carry associated data and checksums', async () => {
  const dataKey = randomBytes(32)
  const kek = open()
  const wrapped = await kek.wrap(dataKey, 'purser|org_a')
  expect(Buffer.from(wrapped).includes(dataKey)).toBe(false)
  expect(Buffer.from(await kek.unwrap(wrapped, 'purser|org_a'))).toEqual(dataKey)
  expect(requested.map(({ url }) => url)).toEqual([`/v1/${key}:encrypt`, `/v1/${key}:decrypt`])
  const place = Buffer.from('purser|org_a')
  const aad = {
    additionalAuthenticatedData: place.toString('base64'),
    additionalAuthenticatedDataCrc32c: String(crc32c(place)),
  }
  expect(requested[0]?.body).toEqual({
    plaintext: dataKey.toString('base64'),
    plaintextCrc32c: String(crc32c(dataKey)),
    ...aad,
  })
  expect(requested[1]?.body).toEqual({
    ciphertext: Buffer.from(wrapped).toString('base64'),
    ciphertextCrc32c: String(crc32c(wrapped)),
    ...aad,
  })
})

test('the service account signs its own token, only for this service, and renews it before it expires', async () => {
  const kek = open()
  await kek.wrap(randomBytes(32), 'a')
  await kek.wrap(randomBytes(32), 'a')
  nowMs += 3_301_000
  await kek.wrap(randomBytes(32), 'a')
  expect(new Set(requested.map(({ bearer }) => bearer)).size).toBe(2)
  for (const { bearer } of requested) {
    const [header = '', claims = '', signature = ''] = bearer.split('.')
    const signed = Buffer.from(`${header}.${claims}`)
    expect(verify('sha256', signed, account.publicKey, Buffer.from(signature, 'base64url'))).toBe(true)
    expect(JSON.parse(Buffer.from(header, 'base64url').toString())).toEqual({ alg: 'RS256', typ: 'JWT', kid: 'kid-1' })
    const claimed = JSON.parse(Buffer.from(claims, 'base64url').toString())
    expect(claimed).toMatchObject({ iss: email, sub: email, aud: 'https://cloudkms.googleapis.com/' })
    expect(claimed.exp - claimed.iat).toBe(3_600)
  }
})

test('without a key file the token comes from the machine’s account and is cached until it expires', async () => {
  const kek = open('machine')
  const wrapped = await kek.wrap(randomBytes(32), 'a')
  await kek.unwrap(wrapped, 'a')
  expect(requested.map(({ bearer }) => bearer)).toEqual(['token-1', 'token-1'])
  nowMs += 3_600_000
  await kek.unwrap(wrapped, 'a')
  expect(requested.at(-1)?.bearer).toBe('token-2')
})

test('a wrapped key does not open with other associated data or after a change', async () => {
  const kek = open()
  const wrapped = await kek.wrap(randomBytes(32), 'purser|org_a')
  await expect(kek.unwrap(wrapped, 'purser|org_b')).rejects.toThrow()
  const changed = Uint8Array.from(wrapped)
  changed[20] = (changed[20] ?? 0) ^ 1
  await expect(kek.unwrap(changed, 'purser|org_a')).rejects.toThrow()
})

test.each([
  ['a plaintext that the service did not verify', { verifiedPlaintextCrc32c: false }],
  ['associated data that the service did not verify', { verifiedAdditionalAuthenticatedDataCrc32c: false }],
  ['a ciphertext that was changed in transit', { ciphertextCrc32c: '1' }],
  [
    'a ciphertext of another key',
    { name: 'projects/acme/locations/x/keyRings/y/cryptoKeys/other/cryptoKeyVersions/1' },
  ],
  ['an answer without a ciphertext', { ciphertext: undefined }],
])('%s is refused before an unusable data key is stored', async (_, fault) => {
  change = (response) => ({ ...response, ...fault })
  await expect(open().wrap(randomBytes(32), 'a')).rejects.toThrow()
})

test('a data key that was changed in transit is refused', async () => {
  const wrapped = await open().wrap(randomBytes(32), 'a')
  change = (response) => ({ ...response, plaintext: randomBytes(32).toString('base64') })
  await expect(open().unwrap(wrapped, 'a')).rejects.toThrow('changed in transit')
})

test('a file that is not a service account’s key is named in the error, without its content', () => {
  const secret = randomBytes(8).toString('hex')
  const file = path.join(directory, 'wrong.json')
  writeFileSync(file, JSON.stringify({ type: 'authorized_user', refresh_token: secret }))
  const outbound = createOutbound()
  const attempt = () =>
    gcpKmsKeyEncryption(
      { key, credentialsFile: file },
      { outbound, clock: { now: () => instantOf(nowMs) }, fingerprint: 'f' },
    )
  expect(attempt).toThrow(/wrong\.json is not the key file/)
  expect(attempt).not.toThrow(secret)
})

async function answerTo(request: IncomingMessage): Promise<Record<string, unknown> | undefined> {
  if (request.url === '/computeMetadata/v1/instance/service-accounts/default/token') {
    if (request.headers['metadata-flavor'] !== 'Google') return undefined
    metadataRequested += 1
    return { access_token: `token-${metadataRequested}`, expires_in: 3_599, token_type: 'Bearer' }
  }
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  const body = Requested.parse(JSON.parse(Buffer.concat(chunks).toString()))
  const bearer = /^Bearer (\S+)$/.exec(String(request.headers.authorization))?.[1] ?? ''
  requested.push({ url: request.url ?? '', body, bearer })
  const response = request.url?.endsWith(':encrypt') === true ? wrapInside(body) : unwrapInside(body)
  return bearer === '' || response === undefined ? undefined : change(response)
}

function wrapInside(body: Record<string, string>): Record<string, unknown> {
  const iv = randomBytes(12)
  const cipher = createCipheriv('aes-256-gcm', inside, iv).setAAD(aadOf(body))
  const text = Buffer.concat([iv, cipher.update(body.plaintext ?? '', 'base64'), cipher.final(), cipher.getAuthTag()])
  return {
    name: `${key}/cryptoKeyVersions/3`,
    ciphertext: text.toString('base64'),
    ciphertextCrc32c: String(crc32c(text)),
    verifiedPlaintextCrc32c: body.plaintextCrc32c === String(crc32c(Buffer.from(body.plaintext ?? '', 'base64'))),
    verifiedAdditionalAuthenticatedDataCrc32c: body.additionalAuthenticatedDataCrc32c === String(crc32c(aadOf(body))),
  }
}

function unwrapInside(body: Record<string, string>): Record<string, unknown> | undefined {
  const bytes = Buffer.from(body.ciphertext ?? '', 'base64')
  if (body.ciphertextCrc32c !== String(crc32c(bytes))) return undefined
  const decipher = createDecipheriv('aes-256-gcm', inside, bytes.subarray(0, 12)).setAAD(aadOf(body))
  decipher.setAuthTag(bytes.subarray(-16))
  try {
    const plain = Buffer.concat([decipher.update(bytes.subarray(12, -16)), decipher.final()])
    return { plaintext: plain.toString('base64'), plaintextCrc32c: String(crc32c(plain)) }
  } catch {
    return undefined
  }
}

function aadOf(body: Record<string, string>): Buffer {
  return Buffer.from(body.additionalAuthenticatedData ?? '', 'base64')
}
