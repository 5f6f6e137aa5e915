import { expect, test } from 'vitest'
import { isCredentialName, redacted } from './routes.ts'

const names = [
  ...[
    'Authorization',
    'proxy-authorization',
    'AUTH',
    'Cookie',
    'set-cookie',
    'X-API-Key',
    'x_api_key',
    'apiKey',
    'APIKEY',
  ],
  ...['token', 'access_token', 'refreshToken', 'X-Auth-Token', 'secret', 'client_secret', 'clientSecret', 'password'],
  ...['passwd', 'userPassword', 'PWD', 'passphrase', 'signature', 'X-Hub-Signature-256', 'sig', 'X-PAYMENT'],
  ...[
    'payment-signature',
    'privateKey',
    'private_key',
    'session_id',
    'sid',
    'jwt',
    'x-csrf-token',
    'seed',
    'otp',
    'pin',
  ],
  ...['ｐａｓｓｗｏｒｄ', 'p-a-s-s-w-o-r-d', 'to.ken', 'credentials', 'key'],
]

test.each(names)('the example of %s is dropped, and the name stays', (name) => {
  expect(redacted({ name, type: 'string', required: true, example: 'the value' })).toEqual({
    name,
    type: 'string',
    required: true,
  })
})

test.each([
  'city',
  'units',
  'accept-language',
  'keyword',
  'monkey',
  'spin',
  'design',
  'page',
  'compass',
  'sigma',
  'x-request-id',
])('the example of %s stays', (name) => {
  expect(isCredentialName(name)).toBe(false)
  const param = { name, type: 'string', required: false, example: 'Oslo' }
  expect(redacted(param)).toEqual(param)
})

test.each([
  'Bearer abc',
  ' basic dXNlcjpwYXNz',
  'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.x',
  'svc_live_sk_abc',
  'sk_test_abc',
  'whsec_abc',
  '-----BEGIN PRIVATE KEY-----',
])('an example that looks like a credential is dropped under any name: %s', (example) => {
  expect(redacted({ name: 'city', type: 'string', required: false, example })).toEqual({
    name: 'city',
    type: 'string',
    required: false,
  })
})
