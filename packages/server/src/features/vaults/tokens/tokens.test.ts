import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { formOf, upload } from '../../../../test/files/uploads.ts'
import { operationOf } from '../../../../test/raw-requests.ts'
import { aVaultStage, hourMs, type VaultStage } from '../../../../test/stories/vaults-stage.ts'
import { codeOf, type Org, request } from '../../../../test/world.ts'
import { operations } from '../../../operations.ts'
import { sql } from '../../../platform/db/db.ts'
import { systemCtx } from '../../../platform/work/runner.ts'
import { accessEndsAt, deleteExpiredVaultTokens, streamGuest } from './index.ts'

let stage: VaultStage
let org: Org
const TextRow = z.object({ text: z.string() })
const CountRow = z.object({ count: z.bigint() })

beforeAll(async () => {
  stage = await aVaultStage()
  org = await stage.world.organisation()
})
afterAll(() => stage?.world.stop())

/** A vault with a document and a file, and a token that reads it. */
async function aReadableVault(body: unknown = {}) {
  const vaultId = await stage.vault(org)
  const document = await stage.call(org, 'POST', `/vaults/${vaultId}/documents`, { name: 'a', data: { b: 1 } })
  const form = formOf({ filename: 'a.txt', content: 'a file' })
  const file = await upload(stage.world.base, { key: org.testKey, vaultId, body: form })
  const made = await stage.call(org, 'POST', `/vaults/${vaultId}/tokens`, body)
  expect(made.status).toBe(201)
  const paths = {
    'vaults.get': `/vaults/${vaultId}`,
    'vaults.documents.get': `/vaults/${vaultId}/documents/${document.body.id}`,
    'vaults.files.get': `/vaults/${vaultId}/files/${file.body.id}`,
  }
  return { vaultId, paths, made: made.body, token: String(made.body.token) }
}

const statusOf = async (token: string, path: string, method = 'GET') =>
  (await fetch(stage.world.base + path, { method, headers: { authorization: `Bearer ${token}` } })).status

test('a token states its access and expiry, is shown once, and is stored only as a hash', async () => {
  const { vaultId, made, token } = await aReadableVault()
  expect(made).toEqual({
    id: expect.stringMatching(/^vat_[0-9a-z]{26}$/),
    token: expect.stringMatching(/^vat_[A-Za-z0-9_-]{43}$/),
    vaultId,
    expiresAt: new Date(stage.now().getTime() + hourMs).toISOString(),
  })
  const dump = await stage.world.database.db.many(
    TextRow,
    sql`select row_to_json(vault_tokens)::text as text from vault_tokens union all select row_to_json(idempotency_keys)::text from idempotency_keys`,
  )
  expect(JSON.stringify(dump)).not.toContain(token.slice(4))
})

test('a token reads its vault, its documents and its files', async () => {
  const { paths, token } = await aReadableVault()
  for (const path of Object.values(paths)) expect(await statusOf(token, path), path).toBe(200)
})

test('a token opens no other vault, and on every other operation of the service it is 401 with the documented detail', async () => {
  const { vaultId, paths, token } = await aReadableVault()
  const other = await aReadableVault()
  for (const path of Object.values(other.paths)) expect(await statusOf(token, path), path).toBe(401)
  const opened = [...Object.keys(paths), 'vaults.events']
  for (const operation of operations.filter(({ id }) => !opened.includes(id))) {
    const path = operation.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => (name === 'id' ? vaultId : 'none'))
    const refused = await request(stage.world.base, { key: token, method: operation.method, path })
    expect([refused.status, codeOf(refused)], operation.id).toEqual([401, 'unauthorized'])
    expect(refused.body.detail).toMatch(/^API key is invalid or missing/)
  }
  expect(await statusOf(token, `/vaults/${vaultId}`)).toBe(200)
})

test('only these operations of the service accept a guest', () => {
  const taking = operations.filter(({ guests }) => guests !== undefined).map(({ id }) => id)
  expect(taking.filter((id) => id !== 'vaults.events').sort()).toEqual([
    'vaults.documents.get',
    'vaults.files.get',
    'vaults.get',
  ])
  for (const id of taking) expect(operationOf(id).method).toBe('GET')
})

test('a token that is changed, cut, made up or of another letter is 401', async () => {
  const { paths, token } = await aReadableVault()
  const last = token.endsWith('A') ? 'B' : 'A'
  for (const wrong of [
    `${token.slice(0, -1)}${last}`,
    token.slice(0, -1),
    `${token}A`,
    token.toUpperCase(),
    `vat_${'A'.repeat(43)}`,
    'vat_',
    `vat_${'\u00e4'.repeat(3)}`,
  ])
    expect(await statusOf(encodeURI(wrong), paths['vaults.get']), wrong).toBe(401)
})

test('a token that is used for anything but reading its vault is refused as the token of a vault', async () => {
  const { vaultId, token } = await aReadableVault()
  const refused = await stage.world.call(token, 'POST', `/vaults/${vaultId}/seal`, {})
  expect([refused.status, refused.body.detail]).toEqual([401, expect.stringContaining('the token of a vault')])
})

test('a token lives as long as requested, at most a day, and never beyond its vault’s end', async () => {
  const { vaultId, paths, made, token } = await aReadableVault({ expiresIn: 60 })
  expect(made.expiresAt).toBe(new Date(stage.now().getTime() + 60_000).toISOString())
  stage.pass(59_999)
  expect(await statusOf(token, paths['vaults.get'])).toBe(200)
  stage.pass(1)
  for (const path of Object.values(paths)) expect(await statusOf(token, path)).toBe(401)
  for (const expiresIn of [59, 86_401, 0, -1, 1.5, '60', null]) {
    const refused = await stage.call(org, 'POST', `/vaults/${vaultId}/tokens`, { expiresIn })
    expect([refused.status, codeOf(refused)], String(expiresIn)).toEqual([422, 'validation-error'])
  }
  const short = await stage.vault(org, { ttl: '10m' })
  const { body } = await stage.call(org, 'POST', `/vaults/${short}/tokens`, {})
  expect(body.expiresAt).toBe(new Date(stage.now().getTime() + 600_000).toISOString())
})

test('a token ends with its vault, and none is made for one that is gone, sealed ones excepted', async () => {
  const { vaultId, token } = await aReadableVault()
  expect((await stage.call(org, 'POST', `/vaults/${vaultId}/seal`, {})).status).toBe(200)
  expect((await stage.call(org, 'POST', `/vaults/${vaultId}/tokens`, {})).status).toBe(201)
  await stage.call(org, 'DELETE', `/vaults/${vaultId}`)
  expect(await statusOf(token, `/vaults/${vaultId}`)).toBe(401)
  expect(codeOf(await stage.call(org, 'POST', `/vaults/${vaultId}/tokens`, {}))).toBe('vault-not-found')
  const other = await stage.world.organisation()
  const foreign = await aReadableVault()
  expect(codeOf(await stage.call(other, 'POST', `/vaults/${foreign.vaultId}/tokens`, {}))).toBe('vault-not-found')
})

test('the same Idempotency-Key gives the same token again, to the same key alone', async () => {
  const { vaultId } = await aReadableVault()
  const ask = (key: string) =>
    request(stage.world.base, {
      key,
      method: 'POST',
      path: `/vaults/${vaultId}/tokens`,
      body: {},
      headers: { 'idempotency-key': 'token' },
    })
  const first = await ask(org.testKey)
  expect((await ask(org.testKey)).body).toEqual(first.body)
  const spare = await stage.call(org, 'POST', '/organisations/current/api-keys', { name: 's', environment: 'test' })
  expect(codeOf(await ask(String(spare.body.key)))).toBe('idempotency-key-reused')
})

test('the audit log has each token and its revocation, and no ticket', async () => {
  const vaultId = await stage.vault(org)
  for (const kind of ['token', 'ticket', 'ticket', 'token'])
    expect((await stage.call(org, 'POST', `/vaults/${vaultId}/tokens`, { kind })).status).toBe(201)
  expect((await stage.call(org, 'DELETE', `/vaults/${vaultId}/tokens`)).status).toBe(204)
  const recorded = await stage.world.database.db.many(
    TextRow,
    sql`select action as text from audit_log where organisation_id = ${org.id} and details ->> 'vaultId' = ${vaultId} order by 1`,
  )
  const [made, ended] = ['vaults.tokens.create', 'vaults.tokens.revoke']
  expect(recorded.map(({ text }) => text)).toEqual([made, made, ended, ended])
})

test('a ticket opens one stream of its vault within a minute, and reads nothing', async () => {
  const { vaultId, paths } = await aReadableVault()
  const other = await stage.vault(org)
  const { deps } = stage.world.server
  const aTicket = async () =>
    String((await stage.call(org, 'POST', `/vaults/${vaultId}/tokens`, { kind: 'ticket' })).body.token)
  const open = (ticket: unknown, id = vaultId) => streamGuest(deps, { params: { id }, query: { ticket }, headers: {} })

  const ticket = await aTicket()
  for (const path of Object.values(paths)) expect(await statusOf(ticket, path)).toBe(401)
  await expect(open(ticket, other)).rejects.toMatchObject({ code: 'unauthorized' })
  const guests = await Promise.allSettled(Array.from({ length: 10 }, () => open(ticket)))
  const [guest] = guests.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
  expect(guests.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
  expect(guest).toEqual({
    tenant: { organisationId: org.id, environment: 'test' },
    actor: { kind: 'guest', guestId: expect.stringMatching(/^vat_[0-9a-z]{26}$/) },
    shareOwner: org.id,
  })

  const late = await aTicket()
  stage.pass(60_000)
  for (const bad of [late, '', 'vat_', ['a'], 7])
    await expect(open(bad)).rejects.toMatchObject({ code: 'unauthorized' })
  const refused = await stage.call(org, 'POST', `/vaults/${vaultId}/tokens`, { kind: 'ticket', expiresIn: 60 })
  expect([refused.status, JSON.stringify(refused.body.errors)]).toEqual([422, expect.stringContaining('/expiresIn')])
})

test('a stream knows when the token or ticket that opened it ends; a key has no such end', async () => {
  const { vaultId, made, token } = await aReadableVault()
  const { deps } = stage.world.server
  const requested = { params: { id: vaultId }, query: {}, headers: { authorization: `Bearer ${token}` } }
  const guest = await streamGuest(deps, requested)
  if (guest === undefined) throw new Error('no guest')
  expect(await accessEndsAt({ ...deps, ...guest })).toEqual(new Date(String(made.expiresAt)))
  const ticket = await stage.call(org, 'POST', `/vaults/${vaultId}/tokens`, { kind: 'ticket' })
  const opened = await streamGuest(deps, { ...requested, query: { ticket: ticket.body.token } })
  if (opened === undefined) throw new Error('no guest')
  expect(await accessEndsAt({ ...deps, ...opened })).toEqual(new Date(stage.now().getTime() + 24 * hourMs))
  expect(await accessEndsAt({ ...deps, ...guest, actor: { kind: 'system' } })).toBeNull()
  expect(await streamGuest(deps, { ...requested, headers: { authorization: `Bearer ${org.testKey}` } })).toBeUndefined()
})

test('a stream whose token is deleted while it opens ends at once', async () => {
  const { vaultId, token } = await aReadableVault({ expiresIn: 60 })
  const { deps } = stage.world.server
  const guest = await streamGuest(deps, {
    params: { id: vaultId },
    query: {},
    headers: { authorization: `Bearer ${token}` },
  })
  if (guest === undefined) throw new Error('no guest')
  stage.pass(60_001)
  await deleteExpiredVaultTokens.run(systemCtx(deps))
  expect(await accessEndsAt({ ...deps, ...guest })).toEqual(stage.now())
})

test('expired tokens are deleted, others are not', async () => {
  const { paths, token } = await aReadableVault()
  stage.pass(hourMs - 1)
  await deleteExpiredVaultTokens.run(systemCtx(stage.world.server.deps))
  expect(await statusOf(token, paths['vaults.get'])).toBe(200)
  stage.pass(2)
  await deleteExpiredVaultTokens.run(systemCtx(stage.world.server.deps))
  const { count } = await stage.world.database.db.one(
    CountRow,
    sql`select count(*) as count from vault_tokens where expires_at < ${stage.now()}`,
  )
  expect(count).toBe(0n)
})

/** Reads a stream to its end, in parts; false while it is open. */
async function openStreamOf(path: string, key?: string) {
  const response = await fetch(stage.world.base + path, {
    headers: key === undefined ? {} : { authorization: `Bearer ${key}` },
  })
  const state = { ended: false, status: response.status }
  void response.text().then(
    () => {
      state.ended = true
    },
    () => undefined,
  )
  return state
}

test('tokens are listed without their text, revoked one by one or all at once, and audited', async () => {
  const { vaultId, token, made } = await aReadableVault()
  const path = `/vaults/${vaultId}/tokens`
  stage.pass(1)
  const ticket = await stage.call(org, 'POST', path, { kind: 'ticket' })
  const listed = await stage.call(org, 'GET', path)
  expect(listed.list).toEqual([
    expect.objectContaining({ id: ticket.body.id, kind: 'ticket', madeBy: expect.stringMatching(/^key_/) }),
    expect.objectContaining({ id: made.id, kind: 'token', expiresAt: made.expiresAt }),
  ])
  expect(JSON.stringify(listed.list)).not.toContain(token.slice(4))
  for (const status of [204, 204]) expect((await stage.call(org, 'DELETE', `${path}/${made.id}`)).status).toBe(status)
  expect(await statusOf(token, `/vaults/${vaultId}`)).toBe(401)
  expect((await stage.call(org, 'GET', path)).list.map(({ id }) => id)).toEqual([ticket.body.id])
  expect((await stage.call(org, 'DELETE', path)).status).toBe(204)
  expect((await openStreamOf(`/vaults/${vaultId}/events?ticket=${ticket.body.token}`)).status).toBe(401)
  expect((await stage.call(org, 'GET', path)).list).toEqual([])
  const other = await stage.vault(org)
  const refused = await stage.call(org, 'DELETE', `/vaults/${other}/tokens/${made.id}`)
  expect(codeOf(refused)).toBe('vault-token-not-found')
  const log = await stage.call(org, 'GET', '/organisations/current/audit-log?limit=6')
  const records = log.list.filter(({ action }) => String(action).startsWith('vaults.tokens.')).slice(0, 2)
  expect(records.map(({ action, target }) => [action, target])).toEqual([
    ['vaults.tokens.revoke', made.id],
    ['vaults.tokens.create', made.id],
  ])
})

test('what a revoked key made ends with it: tokens, tickets and the streams that they opened', async () => {
  const { vaultId } = await aReadableVault()
  const { body: leaked } = await stage.call(org, 'POST', '/organisations/current/api-keys', {
    name: 'leaked',
    environment: 'test',
  })
  const make = async (by: string, body: object) =>
    String((await stage.world.call(by, 'POST', `/vaults/${vaultId}/tokens`, body)).body.token)
  const key = String(leaked.key)
  const [token, ticket, unused] = [
    await make(key, {}),
    await make(key, { kind: 'ticket' }),
    await make(key, { kind: 'ticket' }),
  ]
  const own = await make(org.testKey, {})
  const events = `/vaults/${vaultId}/events`
  const [byToken, byTicket, byOwn] = [
    await openStreamOf(events, token),
    await openStreamOf(`${events}?ticket=${ticket}`),
    await openStreamOf(events, own),
  ]
  expect([byToken.status, byTicket.status, byOwn.status]).toEqual([200, 200, 200])
  await stage.call(org, 'DELETE', `/organisations/current/api-keys/${leaked.id}`)
  expect([await statusOf(token, `/vaults/${vaultId}`), await statusOf(own, `/vaults/${vaultId}`)]).toEqual([401, 200])
  expect((await openStreamOf(`${events}?ticket=${unused}`)).status).toBe(401)
  await expect.poll(() => [byToken.ended, byTicket.ended], { timeout: 20_000 }).toEqual([true, true])
  expect(byOwn.ended).toBe(false)
  expect((await stage.call(org, 'GET', `/vaults/${vaultId}/tokens`)).list).toHaveLength(2)
  await stage.call(org, 'DELETE', `/vaults/${vaultId}/tokens`)
  await expect.poll(() => byOwn.ended, { timeout: 20_000 }).toBe(true)
})

test('a token of a key that has an end does not outlive it', async () => {
  const { vaultId } = await aReadableVault()
  const expiresAt = new Date(stage.now().getTime() + hourMs / 2).toISOString()
  const { body: key } = await stage.call(org, 'POST', '/organisations/current/api-keys', {
    name: 'short',
    environment: 'test',
    expiresAt,
  })
  const token = await stage.world.call(String(key.key), 'POST', `/vaults/${vaultId}/tokens`, {})
  expect(token.body.expiresAt).toBe(expiresAt)
})

test('a vault has a limited number of valid tokens; one more waits until the first expires or one is revoked', async () => {
  const limited = await aVaultStage('api', { vaultTokensMax: 3 })
  try {
    const owner = await limited.world.organisation()
    const tokensOf = async () => `/vaults/${await limited.vault(owner)}/tokens`
    const [path, other] = [await tokensOf(), await tokensOf()]
    const make = (body: unknown = {}, at = path) => limited.call(owner, 'POST', at, body)
    const first = await make({ expiresIn: 120 })
    for (const body of [{}, { kind: 'ticket' }]) expect((await make(body)).status).toBe(201)
    const refused = await make()
    expect([refused.status, codeOf(refused)]).toEqual([429, 'rate-limit-exceeded'])
    expect(refused.body.detail).toMatch(/^The vault has 3 valid tokens and unused tickets/)
    expect(refused.headers.get('retry-after')).toBe('60')
    expect((await make({}, other)).status).toBe(201)
    limited.pass(60_001)
    expect([(await make()).status, (await make()).status]).toEqual([201, 429])
    expect((await limited.call(owner, 'DELETE', `${path}/${first.body.id}`)).status).toBe(204)
    expect([(await make()).status, (await make()).status]).toEqual([201, 429])
    const tickets = await tokensOf()
    for (let opened = 0; opened < 4; opened++) {
      const { status, body } = await make({ kind: 'ticket' }, tickets)
      expect(status, 'a ticket that has opened its stream counts no more').toBe(201)
      const stream = await fetch(`${limited.world.base}${tickets.replace('tokens', 'events')}?ticket=${body.token}`)
      expect(stream.status).toBe(200)
      await stream.body?.cancel()
    }
  } finally {
    await limited.world.stop()
  }
})
