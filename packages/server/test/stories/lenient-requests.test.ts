import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Answer, codeOf, type Org } from '../world.ts'
import { aVaultStage, hourMs, type VaultStage } from './vaults-stage.ts'

let stage: VaultStage

beforeAll(async () => {
  stage = await aVaultStage()
})
afterAll(() => stage.world.stop())

const pathsOf = ({ body }: Answer) => (body.errors as { path: string }[] | undefined)?.map(({ path }) => path)

test('a member without a role is a member, and an unknown role is refused', async () => {
  const org = await stage.world.organisation()
  const add = (body: object) => stage.call(org, 'POST', '/organisations/current/members', body)
  const added = await add({ email: 'plain@example.com' })
  expect([added.status, added.body.role]).toEqual([201, 'member'])
  expect((await add({ email: 'other@example.com', role: 'boss' })).status).toBe(422)
})

test('a registry parameter needs only a name; null is like absent, and a credential’s value is not stored', async () => {
  const org = await stage.world.organisation()
  const sent = await stage.call(org, 'POST', '/registry/snapshots', {
    host: 'api.example.com',
    method: 'POST',
    routePattern: '/orders',
    headers: [
      { name: 'Accept' },
      { name: 'X-Api-Key', value: 'sk_live_123' },
      { name: 'Accept-Language', value: 'de' },
    ],
    queryParams: null,
    bodyParams: [
      { name: 'size', type: null, required: null, example: null },
      { name: 'count', value: 3 },
    ],
    bodyContentType: null,
    amount: '0.01',
    protocol: 'x402',
    paymentLogId: null,
  })
  expect([sent.status, sent.body]).toEqual([202, { accepted: true }])
  const [route] = (await stage.call(org, 'GET', '/registry/routes')).list
  const param = (name: string, more: object = {}) => ({ name, type: 'string', required: false, ...more })
  expect(route).toMatchObject({
    headers: [param('accept'), param('x-api-key'), param('accept-language', { example: 'de' })],
    queryParams: [],
    bodyParams: [param('size'), param('count', { example: 3 })],
    bodyContentType: null,
    paymentLogId: null,
  })
})

test.each([
  ['a field', { removeExpiry: false }, 422, 'validation-error'],
  ['a list', [], 422, 'validation-error'],
  ['null', null, 422, 'validation-error'],
  ['an empty object', {}, 200, ''],
  ['nothing', undefined, 200, ''],
])('%s is accepted as the body of an operation without a body', async (_case, body, status, code) => {
  const org = await stage.world.organisation()
  const vaultId = await stage.vault(org)
  const response = await stage.call(org, 'POST', `/vaults/${vaultId}/persist`, body)
  expect([response.status, codeOf(response)]).toEqual([status, code])
  const { body: vault } = await stage.call(org, 'GET', `/vaults/${vaultId}`)
  expect(vault.ttl === null).toBe(status === 200)
})

test('a malformed body is refused for an operation without a body, also under an Idempotency-Key and for DELETE', async () => {
  const org = await stage.world.organisation()
  const vaultId = await stage.vault(org)
  const send = (method: string, path: string, headers: Record<string, string> = {}, body = '{') =>
    fetch(`${stage.world.base}${path}`, {
      method,
      headers: { authorization: `Bearer ${org.testKey}`, 'content-type': 'application/json', ...headers },
      body,
    }).then(({ status }) => status)
  expect(await send('POST', `/vaults/${vaultId}/persist`)).toBe(400)
  expect(await send('POST', `/vaults/${vaultId}/persist`, { 'idempotency-key': 'broken' })).toBe(400)
  expect(await send('POST', '/billing/rebuild-cache', { 'content-type': 'text/plain' }, 'x=1')).toBe(415)
  expect(await send('DELETE', `/vaults/${vaultId}`)).toBe(400)
  expect(await send('DELETE', `/vaults/${vaultId}`, {}, '{"force":true}')).toBe(422)
  expect((await stage.call(org, 'GET', `/vaults/${vaultId}`)).body.ttl).not.toBeNull()
})

test.each([
  ['30m', hourMs / 2],
  ['24h', 24 * hourMs],
  ['1d', 24 * hourMs],
  [90, 90_000],
] as const)('a vault token that expires in %s does so', async (expiresIn, ms) => {
  const org = await stage.world.organisation()
  const vaultId = await stage.vault(org)
  const { status, body } = await stage.call(org, 'POST', `/vaults/${vaultId}/tokens`, { expiresIn })
  expect([status, body.expiresAt]).toEqual([201, new Date(stage.now().getTime() + ms).toISOString()])
})

test.each(['25h', '2d', '59s', '1H', ' 1h', '3600', 59, 86_401, 90.5, true, null])(
  'a vault token cannot expire in %s',
  async (expiresIn) => {
    const org = await stage.world.organisation()
    const refused = await stage.call(org, 'POST', `/vaults/${await stage.vault(org)}/tokens`, { expiresIn })
    expect([refused.status, pathsOf(refused)]).toEqual([422, ['/expiresIn']])
  },
)

test('a limit error has its figures in its message', async () => {
  const org = await stage.world.organisation('hobby')
  await stage.world.wallet(org)
  const second = {
    address: '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed',
    chain: 'base-sepolia',
    supportedTokens: ['USDC'],
  }
  const wallet = await stage.call(org, 'POST', '/wallet-infra/byo-wallets', second)
  expect(wallet.body).toMatchObject({ title: 'Plan Limit Reached', limit: 1, current: 1 })
  expect(wallet.body.detail).toBe('The plan allows no more wallets of your own: 1 of 1 used.')
  for (let made = 0; made < 3; made++) await stage.vault(org)
  const vault = await stage.call(org, 'POST', '/vaults', {})
  expect(vault.body.detail).toBe('The plan allows no more active vaults: 3 of 3 used.')
})

test('the examples’ bank account is accepted in test alone', async () => {
  const org = await stage.world.organisation()
  const create = (key: string, changes: object = {}) =>
    stage.world.call(key, 'POST', '/wallet-infra/bank-accounts', {
      accountName: 'Acme Ltd',
      currency: 'GBP',
      sortCode: '20-00-00',
      accountNumber: '12345678',
      ...changes,
    })
  expect((await create(org.testKey)).body.maskedAccount).toBe('****5678')
  const live = await create(org.liveKey)
  expect([live.status, pathsOf(live)]).toEqual([422, ['/accountNumber']])
  expect((await create(org.testKey, { accountNumber: '12345679' })).status).toBe(422)
  expect((await create(org.testKey, { sortCode: '20-00-01' })).status).toBe(422)
})

test.each([
  '2026-06-01',
  '20260601T1159',
  '2026-06-01T11:59',
  '2026-152T11:59',
  '2026-W23-1T11',
  '2026-06-01T13:59 02:00',
])('lists and streams begin at %s', async (from) => {
  const org = await stage.world.organisation()
  const vaultId = await stage.vault(org)
  const query = `from=${from.replaceAll(' ', '+')}`
  expect((await stage.call(org, 'GET', `/payments/logs?${query}`)).status).toBe(200)
  const ending = new AbortController()
  const stream = await fetch(`${stage.world.base}/vaults/${vaultId}/events?${query}`, {
    headers: { authorization: `Bearer ${org.testKey}` },
    signal: ending.signal,
  })
  expect(stream.status).toBe(200)
  const reader = stream.body?.pipeThrough(new TextDecoderStream()).getReader()
  let read = ''
  while (!read.includes('vault.created')) read += (await reader?.read())?.value ?? ''
  ending.abort()
})

test.each(['2026', 'yesterday', '2026-02-30', '2026-06-01T25:00', '-0001-01-01'])(
  '%s is not a valid start',
  async (from) => {
    const org: Org = await stage.world.organisation()
    const refused = await stage.call(org, 'GET', `/payments/logs?from=${from}`)
    expect([refused.status, pathsOf(refused)]).toEqual([422, ['/from']])
  },
)
