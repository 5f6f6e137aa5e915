import { createPublicKey, generateKeyPairSync, sign, verify } from 'node:crypto'
import { expect, test } from 'vitest'
import { composeJws, jwsSigningInput, parseJws } from './jws.ts'
import { utf8 } from './utf8.ts'

const keys = generateKeyPairSync('ed25519')
const header = { alg: 'EdDSA', kid: 'did:web:example.com#seal-1' } as const

function signed(payload: Record<string, unknown>): string {
  const input = jwsSigningInput(header, payload)
  return composeJws(input, sign(null, utf8(input), keys.privateKey))
}

test('a signature can be checked over what the parser says was signed', () => {
  const jws = parseJws(signed({ b: 1, a: 'ü' }))
  expect(jws?.payload).toEqual({ a: 'ü', b: 1 })
  expect(
    verify(
      null,
      jws?.signingInput ?? new Uint8Array(),
      createPublicKey(keys.privateKey),
      jws?.signature ?? new Uint8Array(),
    ),
  ).toBe(true)
})

test('the vector of RFC 8037 appendix A.4 is read, its signature and its signing input', () => {
  const text =
    'eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc.hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg'
  // Its payload is no JSON and its header names no key: ours always do, so it is refused, and not for its signature.
  expect(parseJws(text)).toBeUndefined()
  const key = createPublicKey({
    key: { kty: 'OKP', crv: 'Ed25519', x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo' },
    format: 'jwk',
  })
  const [head, body, signature] = text.split('.')
  expect(verify(null, utf8(`${head}.${body}`), key, Buffer.from(signature ?? '', 'base64url'))).toBe(true)
})

test.each([
  [
    'another algorithm',
    (text: string) => text.replace(/^[^.]*/, Buffer.from('{"alg":"none","kid":"x"}').toString('base64url')),
  ],
  ['no signature', (text: string) => text.replace(/[^.]*$/, '')],
  ['a fourth part', (text: string) => `${text}.AA`],
  ['padding', (text: string) => `${text}==`],
  [
    'a payload that is a list',
    (text: string) => text.replace(/\.[^.]*\./, `.${Buffer.from('[1]').toString('base64url')}.`),
  ],
])('%s makes it no JWS of ours', (_name, spoil) => {
  expect(parseJws(spoil(signed({ a: 1 })))).toBeUndefined()
})
