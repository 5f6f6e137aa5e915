import { createServer, type RequestListener, type Server } from 'node:http'
import { afterEach, expect, test } from 'vitest'
import { fetchKeys, itemProof, KeysUnavailableError, verifyItem, verifySeal } from '../src/seal/index.ts'
import { aSealer, sealedBy, songItem } from './seal-stage.ts'

const sealer = aSealer()
const proof = sealedBy(sealer)
const [jwk] = sealer.jwks.keys

const servers: Server[] = []
afterEach(() => {
  for (const server of servers.splice(0)) server.close()
})

test('a proof does not verify with another key of the same kid', async () => {
  const { jwks: keys } = aSealer()
  expect(await verifySeal(proof, { keys })).toMatchObject({ ok: false, fault: 'signature-invalid' })
  const one = itemProof(proof, songItem.id)
  expect(await verifyItem(one, { keys })).toMatchObject({ ok: false, fault: 'signature-invalid' })
})

test('a proof verifies only with the key of the kid that its statement names', async () => {
  const whole = (kid: string) => ({ keys: [{ ...jwk, kid }] })
  for (const kid of [
    'seal-2',
    'did:web:pay.example.com#seal-2',
    'did:web:evil.example#seal-1',
    'pay.example.com#seal-1',
  ])
    expect(await verifySeal(proof, { keys: whole(kid) }), kid).toMatchObject({ ok: false, fault: 'key-unknown' })
  for (const kid of ['seal-1', 'did:web:pay.example.com#seal-1'])
    expect(await verifySeal(proof, { keys: whole(kid) }), kid).toMatchObject({ ok: true })
})

test('what was signed before a rotation stays checkable with the set that has the old key too', async () => {
  const keys = { keys: [...aSealer('pay.example.com', 'seal-2').jwks.keys, ...sealer.jwks.keys] }
  expect(await verifySeal(proof, { keys })).toMatchObject({ ok: true, kid: sealer.kid })
})

test('the keys in a proof are believed only where the caller says so, and a forger’s then too', async () => {
  const forger = aSealer()
  const forged = sealedBy(forger)
  expect(await verifySeal(forged, { keys: sealer.jwks })).toMatchObject({ ok: false, fault: 'signature-invalid' })
  expect(await verifySeal(forged, { keys: 'unsafe-keys-in-proof' })).toMatchObject({ ok: true })
  const { manifest, statement } = forged
  const bare = await verifySeal({ manifest, statement }, { keys: 'unsafe-keys-in-proof' })
  expect(bare).toMatchObject({ ok: false, fault: 'key-unknown' })
})

test.each<[string, unknown]>([
  ['of another kind', { ...jwk, kty: 'EC', crv: 'P-256' }],
  ['on another curve', { ...jwk, crv: 'X25519' }],
  ['for encryption', { ...jwk, use: 'enc' }],
  ['for another algorithm', { ...jwk, alg: 'ES256' }],
  ['with an algorithm that is no text', { ...jwk, alg: 1 }],
  ['that may only sign', { ...jwk, key_ops: ['sign'] }],
  ['without a name', { ...jwk, kid: undefined }],
  ['of 31 bytes', { ...jwk, x: Buffer.alloc(31).toString('base64url') }],
  ['that is null', null],
])('a key %s is ignored', async (_what, other) => {
  expect(await verifySeal(proof, { keys: { keys: [other] } })).toMatchObject({ ok: false, fault: 'keys-unusable' })
  expect(await verifySeal(proof, { keys: { keys: [other, jwk] } })).toMatchObject({ ok: true })
})

test('32 bytes that are no point of the curve are a key that signed nothing', async () => {
  const keys = { keys: [{ ...jwk, x: Buffer.alloc(32, 0xff).toString('base64url') }] }
  expect(await verifySeal(proof, { keys })).toMatchObject({ ok: false, fault: 'signature-invalid' })
})

test('fetched keys carry the name of the service that they came from, and prove its seals alone', async () => {
  const { url, host } = await serving((request, response) => {
    expect(request.url).toBe('/.well-known/jwks.json')
    response.end(JSON.stringify(local.jwks))
  })
  const local = aSealer(host)
  const keys = await fetchKeys(`${url}/`)
  expect(keys.keys).toEqual([expect.objectContaining({ kid: local.kid, x: local.x })])
  expect(await verifySeal(sealedBy(local), { keys })).toMatchObject({ ok: true, kid: local.kid })
  const posing = sealedBy({ ...local, kid: 'did:web:pay.example.com#seal-1' })
  const claimedKid = 'did:web:pay.example.com#seal-1'
  expect(await verifySeal(posing, { keys })).toMatchObject({ ok: false, fault: 'key-unknown', claimedKid })
})

test('a service under a path is requested under that path and named with it', async () => {
  const requested: string[] = []
  const send: typeof fetch = async (input) => {
    requested.push(String(input))
    return Response.json(sealer.jwks)
  }
  const keys = await fetchKeys('https://example.com/a b/purser/', { fetch: send })
  expect(requested).toEqual(['https://example.com/a%20b/purser/.well-known/jwks.json'])
  expect(keys.keys).toEqual([expect.objectContaining({ kid: 'did:web:example.com:a%2520b:purser#seal-1' })])
})

test('a service cannot bring keys in the name of another', async () => {
  const send = async () => Response.json({ keys: [{ ...jwk, kid: sealer.kid }] })
  await expect(fetchKeys('https://evil.example', { fetch: send })).rejects.toThrow(KeysUnavailableError)
  expect(await fetchKeys('https://pay.example.com', { fetch: send })).toMatchObject({ keys: [{ kid: sealer.kid }] })
})

test.each([
  'http://pay.example.com',
  'http://127.0.0.1.evil.example',
  'ftp://localhost',
  'file:///etc/keys',
  'pay',
  '',
])('keys are not fetched from %s', async (baseUrl) => {
  const never = () => Promise.reject(new Error('this should not be requested'))
  await expect(fetchKeys(baseUrl, { fetch: never })).rejects.toThrow(TypeError)
})

test.each<[string, RequestListener]>([
  ['is missing', (_, response) => response.writeHead(404).end('{}')],
  [
    'is elsewhere',
    (request, response) => {
      if (request.url === '/keys') response.end(JSON.stringify(sealer.jwks))
      else response.writeHead(302, { location: '/keys' }).end()
    },
  ],
  ['is not JSON', (_, response) => response.end('<html>')],
  ['is empty', (_, response) => response.end('{"keys":[]}')],
  ['is no set', (_, response) => response.end('[]')],
  ['is too large', (_, response) => response.end(JSON.stringify(sealer.jwks).padEnd(1_000_000))],
  [
    'is cut off',
    (_, response) => response.writeHead(200, { 'content-length': 100 }).end('{"keys":', () => response.destroy()),
  ],
])('a key set that %s is an error of its own and no verdict', async (_what, listener) => {
  const { url } = await serving(listener)
  await expect(fetchKeys(url)).rejects.toThrow(KeysUnavailableError)
})

test('a service that does not answer is given up on', async () => {
  const { url } = await serving(() => {})
  await expect(fetchKeys(url, { timeoutMs: 20 })).rejects.toThrow(KeysUnavailableError)
  await expect(fetchKeys(url, { signal: AbortSignal.abort() })).rejects.toThrow(KeysUnavailableError)
})

async function serving(listener: RequestListener): Promise<{ readonly url: string; readonly host: string }> {
  const server = createServer(listener)
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the server has no port')
  const host = `127.0.0.1:${address.port}`
  return { url: `http://${host}`, host }
}
