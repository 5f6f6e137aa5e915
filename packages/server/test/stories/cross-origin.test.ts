import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Org } from '../world.ts'
import { aVaultStage, type VaultStage } from './vaults-stage.ts'

let stage: VaultStage
let org: Org
let vaultId: string
let token: string

beforeAll(async () => {
  stage = await aVaultStage()
  org = await stage.world.organisation()
  vaultId = await stage.vault(org)
  const made = await stage.call(org, 'POST', `/vaults/${vaultId}/tokens`, {})
  token = String(made.body.token)
})
afterAll(() => stage.world.stop())

const origin = 'https://agent.example'

/** A browser's preflight for a cross-origin request with custom headers. */
function preflight(path: string, method = 'GET', requested = 'authorization,last-event-id,range'): Promise<Response> {
  const headers = { origin, 'access-control-request-method': method, 'access-control-request-headers': requested }
  return fetch(`${stage.world.base}${path}`, { method: 'OPTIONS', headers })
}

/** Whether a browser lets the page continue after this answer, as the Fetch standard says (4.9, CORS-preflight fetch). */
function allows({ ok, headers }: Response, method: string, requested: readonly string[]): boolean {
  const listOf = (name: string) => (headers.get(name) ?? '').toLowerCase().split(/, */)
  const allowed = listOf('access-control-allow-headers')
  const isAllowed = (name: string) => allowed.includes(name) || (name !== 'authorization' && allowed.includes('*'))
  const methods = listOf('access-control-allow-methods')
  const mayCall = ['get', 'head', 'post'].includes(method.toLowerCase()) || methods.includes(method.toLowerCase())
  return ok && headers.get('access-control-allow-origin') === '*' && mayCall && requested.every(isAllowed)
}

test('a page of any origin may read with a vault token what the token grants, and CORS allows no cookies', async () => {
  const document = await stage.call(org, 'POST', `/vaults/${vaultId}/documents`, { name: 'a', data: {} })
  const opened = [`/vaults/${vaultId}`, `/vaults/${vaultId}/documents/${document.body.id}`, `/vaults/${vaultId}/events`]
  const others = [`/vaults/${vaultId}/files/fil_01h455vb4pex5vsknk084sn02q`]
  for (const path of [...opened, ...others]) {
    const response = await preflight(path)
    expect(allows(response, 'GET', ['authorization', 'last-event-id', 'range'])).toBe(true)
    expect(response.headers.get('access-control-allow-credentials')).toBeNull()
    const ending = new AbortController()
    const read = await fetch(`${stage.world.base}${path}`, {
      headers: { origin, authorization: `Bearer ${token}` },
      signal: ending.signal,
    })
    expect([read.status, read.headers.get('access-control-allow-origin')]).toEqual([
      opened.includes(path) ? 200 : 404,
      '*',
    ])
    ending.abort()
  }
})

test('a page can read a refusal like any answer', async () => {
  const refused = await fetch(`${stage.world.base}/vaults/${vaultId}`, {
    headers: { origin, authorization: `Bearer vat_${'x'.repeat(43)}` },
  })
  expect([refused.status, refused.headers.get('access-control-allow-origin')]).toEqual([401, '*'])
  expect(refused.headers.get('access-control-expose-headers')).toBe('*')
})

test('no page may delete a vault or a file, nor call what a token does not grant', async () => {
  for (const path of [`/vaults/${vaultId}`, `/vaults/${vaultId}/files/fil_01h455vb4pex5vsknk084sn02q`])
    expect(allows(await preflight(path, 'DELETE'), 'DELETE', ['authorization'])).toBe(false)
  for (const path of ['/vaults', '/webhooks', '/wallet-infra/transfer', '/metrics', `/vaults/${vaultId}/tokens`]) {
    const response = await preflight(path, 'POST')
    expect([response.status, response.headers.get('access-control-allow-origin')]).toEqual([404, null])
    const read = await fetch(`${stage.world.base}${path}`, { headers: { authorization: `Bearer ${org.testKey}` } })
    expect(read.headers.get('access-control-allow-origin')).toBeNull()
  }
})

test.each([
  '/openapi.json',
  '/docs',
  '/healthz',
  '/problems/vault-not-found',
  '/.well-known/jwks.json',
  '/.well-known/did.json',
])('a page of any origin may read %s', async (path) => {
  expect(allows(await preflight(path, 'GET', 'x-requested-with'), 'GET', ['x-requested-with'])).toBe(true)
  const read = await fetch(`${stage.world.base}${path}`, { headers: { origin } })
  expect([read.status, read.headers.get('access-control-allow-origin')]).toEqual([200, '*'])
})
