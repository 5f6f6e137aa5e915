import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import {
  aVaultStage,
  countersOf,
  hourMs,
  reportOf,
  streamOf,
  type VaultStage,
} from '../../../test/stories/vaults-stage.ts'
import { codeOf } from '../../../test/world.ts'
import { sql } from '../../platform/db/db.ts'
import { emitEvent } from './events.ts'
import { VaultParams } from './schema.ts'

let stage: VaultStage
const anywhere = 'vlt_01h455vb4pex5vsknk084sn02q'

beforeAll(async () => {
  stage = await aVaultStage()
})
afterAll(() => stage.world.stop())

test('a new vault has the fields of the API, with the plan’s default as its end', async () => {
  const org = await stage.world.organisation('hobby')
  const order = { description: 'A report', metadata: { job: [1, { deep: null }] } }
  const { status, body } = await stage.call(org, 'POST', '/vaults', order)
  expect(status).toBe(201)
  expect(body).toEqual({
    id: expect.stringMatching(/^vlt_[0-9a-z]{26}$/),
    organisationId: org.id,
    status: 'active',
    createdAt: stage.now().toISOString(),
    ...order,
    sessionId: null,
    ttl: new Date(stage.now().getTime() + 24 * hourMs).toISOString(),
    summary: null,
    sealedAt: null,
    persistedAt: null,
    manifestHash: null,
  })
  const { body: state } = await stage.call(org, 'GET', `/vaults/${body.id}`)
  expect(state).toEqual({
    ...body,
    documents: [],
    files: [],
    eventCount: 1,
    manifest: expect.objectContaining({ sealedAt: null }),
  })
})

test('before the seal the manifest is what a seal would freeze, and afterwards what it froze', async () => {
  const org = await stage.world.organisation()
  const vaultId = await stage.vault(org)
  for (const name of ['second', 'first'])
    await stage.call(org, 'POST', `/vaults/${vaultId}/documents`, { name, data: { name } })
  const { body: running } = await stage.call(org, 'GET', `/vaults/${vaultId}`)
  await stage.call(org, 'POST', `/vaults/${vaultId}/seal`, { summary: 'done' })
  const { body: sealed } = await stage.call(org, 'GET', `/vaults/${vaultId}`)
  const { body: proof } = await stage.call(org, 'GET', `/vaults/${vaultId}/proof`)
  expect(sealed.manifest).toEqual(proof.manifest)
  expect(running.manifest).toEqual({ ...Object(proof.manifest), summary: null, sealedAt: null })
  const { items } = Object(running.manifest)
  expect(items.map(({ name }: { name: string }) => name).sort()).toEqual(['first', 'second'])
})

test.each([
  ['hobby', 24, '24h', '25h'],
  ['pro', 7 * 24, '7d', '8d'],
] as const)('on %s a vault lives %i hours unless stated otherwise, and no longer', async (plan, hours, most, more) => {
  const org = await stage.world.organisation(plan)
  const end = new Date(stage.now().getTime() + hours * hourMs).toISOString()
  expect((await stage.call(org, 'POST', '/vaults', {})).body.ttl).toBe(end)
  expect((await stage.call(org, 'POST', '/vaults', { ttl: most })).body.ttl).toBe(end)
  const refused = await stage.call(org, 'POST', '/vaults', { ttl: more })
  expect([refused.status, codeOf(refused), refused.body.maxSeconds]).toEqual([422, 'ttl-exceeds-plan', hours * 3_600])
  const vaultId = await stage.vault(org)
  expect(codeOf(await stage.call(org, 'POST', `/vaults/${vaultId}/extend`, { ttl: more }))).toBe('ttl-exceeds-plan')
})

test('on enterprise a vault lives thirty days by default and as long as requested', async () => {
  const org = await stage.world.organisation('enterprise')
  const inDays = (days: number) => new Date(stage.now().getTime() + days * 24 * hourMs).toISOString()
  expect((await stage.call(org, 'POST', '/vaults', {})).body.ttl).toBe(inDays(30))
  expect((await stage.call(org, 'POST', '/vaults', { ttl: '3650d' })).body.ttl).toBe(inDays(3_650))
})

test.each(['', '0h', '-1h', '1.5h', '24', 'h', '1w', '24H', ' 24h', '24h ', '024h', '3651d', '1h30m', '٣h'])(
  'a ttl of %j is a fault of the request',
  async (ttl) => {
    const org = await stage.world.organisation('enterprise')
    const refused = await stage.call(org, 'POST', '/vaults', { ttl })
    expect([refused.status, codeOf(refused)]).toEqual([422, 'validation-error'])
    expect(refused.body.errors).toEqual([{ path: '/ttl', message: expect.any(String) }])
  },
)

test('vaults are listed newest first, by status and page by page, without expired ones', async () => {
  const org = await stage.world.organisation('enterprise')
  const made: string[] = []
  for (const name of ['active', 'sealed', 'persisted', 'both', 'short']) {
    made.push(await stage.vault(org, { description: name, ttl: name === 'short' ? '1m' : '7d' }))
    stage.pass(1)
  }
  const [active, sealed, persisted, both, short] = made
  for (const id of [sealed, both]) await stage.call(org, 'POST', `/vaults/${id}/seal`, {})
  for (const id of [persisted, both]) await stage.call(org, 'POST', `/vaults/${id}/persist`)
  const idsOf = async (query: string) => (await stage.call(org, 'GET', `/vaults${query}`)).list.map(({ id }) => id)
  expect(await idsOf('')).toEqual([short, both, persisted, sealed, active])
  stage.pass(60_000)
  expect(await idsOf('')).toEqual([both, persisted, sealed, active])
  expect(await idsOf('?status=active')).toEqual([active])
  expect(await idsOf('?status=sealed')).toEqual([both, sealed])
  expect(await idsOf('?status=persisted')).toEqual([persisted])
  expect((await stage.call(org, 'GET', '/vaults?status=gone')).status).toBe(422)
  const first = await stage.call(org, 'GET', '/vaults?limit=3')
  const next = /<([^>]+)>; rel="next"/.exec(first.headers.get('link') ?? '')?.[1] ?? ''
  const second = await stage.call(org, 'GET', next)
  expect([...first.list, ...second.list].map(({ id }) => id)).toEqual([both, persisted, sealed, active])
  expect(second.headers.get('link')).toBeNull()
})

test('from the instant of its end on, a vault does not exist for any call, swept or not', async () => {
  const org = await stage.world.organisation('enterprise')
  const id = await stage.vault(org, { ttl: '2h' })
  const document = await stage.call(org, 'POST', `/vaults/${id}/documents`, { name: 'a', data: {} })
  stage.pass(2 * hourMs - 1)
  expect((await stage.call(org, 'GET', `/vaults/${id}`)).status).toBe(200)
  stage.pass(1)
  for (const swept of [false, true]) {
    if (swept) await stage.follow()
    for (const [method, path, body] of [
      ['GET', ''],
      ['DELETE', ''],
      ['GET', `/documents/${document.body.id}`],
      ['GET', '/proof'],
      ['POST', '/documents', { name: 'b', data: {} }],
      ['POST', '/emit', { event: 'progress' }],
      ['POST', '/extend', { ttl: '1h' }],
      ['POST', '/persist'],
      ['POST', '/seal', {}],
    ] as const) {
      const response = await stage.call(org, method, `/vaults/${id}${path}`, body)
      expect([method, path, response.status, codeOf(response)]).toEqual([method, path, 404, 'vault-not-found'])
    }
  }
})

test('a repeat of a large document is answered from the document, which is kept once', async () => {
  const org = await stage.world.organisation('pro')
  const path = `/vaults/${await stage.vault(org)}/documents`
  const body = { name: 'Scan', data: { text: 'x'.repeat(70_000) } }
  const send = () => stage.world.call(org.testKey, 'POST', path, body, { 'idempotency-key': 'scan' })
  const [first, again] = [await send(), await send()]
  expect([first.status, again.status, again.headers.get('idempotency-replayed')]).toEqual([201, 201, 'true'])
  expect(again.body).toEqual(first.body)
  expect((await stage.call(org, 'GET', path.replace('/documents', ''))).body.documents).toHaveLength(1)
  const stored = sql`select coalesce(body, sealed_body) is null as is_empty from idempotency_keys where key = 'scan'`
  expect(await stage.world.database.db.many(z.object({ isEmpty: z.boolean() }), stored)).toEqual([{ isEmpty: true }])
})

test('a document comes back as it was sent, with the size and hash of its canonical text', async () => {
  const org = await stage.world.organisation('pro')
  const id = await stage.vault(org)
  const data = { z: [1e300, -0, 0.1, '\u20ac', { b: null, a: true }], a: 'é' }
  const made = await stage.call(org, 'POST', `/vaults/${id}/documents`, { name: 'Findings', data })
  expect(made.status).toBe(201)
  const canonical = '{"a":"é","z":[1e+300,0,0.1,"€",{"a":true,"b":null}]}'
  const record = {
    id: expect.stringMatching(/^doc_/),
    name: 'Findings',
    data: JSON.parse(canonical),
    size: Buffer.byteLength(canonical),
    sha256: Buffer.from(await crypto.subtle.digest('SHA-256', Buffer.from(canonical))).toString('hex'),
    createdAt: stage.now().toISOString(),
  }
  expect((await stage.call(org, 'GET', `/vaults/${id}/documents/${made.body.id}`)).body).toEqual(record)
  expect((await stage.call(org, 'GET', `/vaults/${id}`)).body.documents).toEqual([record])
  const missing = await stage.call(org, 'GET', `/vaults/${id}/documents/doc_01h455vb4pex5vsknk084sn02q`)
  expect([missing.status, codeOf(missing)]).toEqual([404, 'document-not-found'])
})

test('a document belongs to its vault alone', async () => {
  const org = await stage.world.organisation('pro')
  const [one, other] = [await stage.vault(org), await stage.vault(org)]
  const made = await stage.call(org, 'POST', `/vaults/${one}/documents`, { name: 'a', data: {} })
  expect(codeOf(await stage.call(org, 'GET', `/vaults/${other}/documents/${made.body.id}`))).toBe('document-not-found')
})

test('a document of 1 MB of canonical JSON fits, and one byte more is 413', async () => {
  const org = await stage.world.organisation('hobby')
  const id = await stage.vault(org)
  // 1e20 is four characters here and twenty-one in canonical JSON, so that the request stays far below its own limit.
  const many = Array.from({ length: 40_000 }, () => '1e20').join(',')
  const rest = 2 ** 20 - Buffer.byteLength(`{"n":[${many.replaceAll('1e20', '1'.padEnd(21, '0'))}],"t":""}`)
  const send = (padding: number) =>
    fetch(`${stage.world.base}/vaults/${id}/documents`, {
      method: 'POST',
      headers: { authorization: `Bearer ${org.testKey}`, 'content-type': 'application/json' },
      body: `{"name":"big","data":{"n":[${many}],"t":"${'x'.repeat(padding)}"}}`,
    })
  expect((await send(rest + 1)).status).toBe(413)
  expect(await countersOf(stage.world, org)).toMatchObject({ storageBytes: 0 })
  expect((await send(rest)).status).toBe(201)
  expect(await countersOf(stage.world, org)).toMatchObject({ storageBytes: 2 ** 20 })
})

test('data without a canonical text and an invalid name are faults of the request', async () => {
  const org = await stage.world.organisation('pro')
  const id = await stage.vault(org)
  const post = (path: string, body: string) =>
    fetch(`${stage.world.base}/vaults/${id}/${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${org.testKey}`, 'content-type': 'application/json' },
      body,
    })
  for (const body of [
    '{"name":"a","data":{"n":1e999}}',
    '{"name":"a","data":{"n":[{"m":-1e999}]}}',
    '{"name":"a","data":[]}',
    '{"name":"a","data":"text"}',
    '{"name":"","data":{}}',
    `{"name":"${'a'.repeat(256)}","data":{}}`,
    '{"name":"a","data":{"t":"\\ud800"}}',
    '{"name":"a","data":{"\\u0000":1}}',
  ])
    expect([body, (await post('documents', body)).status]).toEqual([body, 422])
  expect((await post('emit', '{"event":"a","payload":{"n":1e999}}')).status).toBe(422)
  expect((await streamOf(stage.world, id)).map(({ event }) => event.type)).toEqual(['vault.created'])
})

test('a vault’s record has the data of its first documents up to 256 KiB; the rest is at each document’s own address', async () => {
  const org = await stage.world.organisation('pro')
  const id = await stage.vault(org)
  const t = 'x'.repeat(100_000)
  for (const name of ['a', 'b', 'c']) {
    await stage.call(org, 'POST', `/vaults/${id}/documents`, { name, data: { t } })
    stage.pass(1)
  }
  const { documents } = (await stage.call(org, 'GET', `/vaults/${id}`)).body as { documents: Record<string, unknown>[] }
  expect(documents.map(({ name, data }) => [name, data !== undefined])).toEqual([
    ['a', true],
    ['b', true],
    ['c', false],
  ])
  expect((await stage.call(org, 'GET', `/vaults/${id}/documents/${documents[2]?.id}`)).body.data).toEqual({ t })
})

test('an emitted event is returned as the stream sends it', async () => {
  const org = await stage.world.organisation('pro')
  const id = await stage.vault(org)
  const { status, body } = await stage.call(org, 'POST', `/vaults/${id}/emit`, {
    event: 'progress',
    payload: { percent: 40.5 },
  })
  expect([status, body]).toEqual([
    201,
    {
      eventId: expect.stringMatching(/^evt_/),
      type: 'progress',
      vaultId: id,
      timestamp: stage.now().toISOString(),
      payload: { percent: 40.5 },
    },
  ])
  expect((await streamOf(stage.world, id)).at(-1)).toEqual({ sequence: 2, event: body })
  expect((await stage.call(org, 'POST', `/vaults/${id}/emit`, { event: 'x'.repeat(128) })).status).toBe(201)
})

test('an event that a process with a later clock appended is not followed by an earlier one', async () => {
  const org = await stage.world.organisation('pro')
  const id = await stage.vault(org)
  const ctx = stage.ctx(org)
  const ahead = new Date(stage.now().getTime() + 5_000)
  const vaultId = VaultParams.parse({ id }).id
  await emitEvent({ ...ctx, clock: { now: () => ahead } }, vaultId, { event: 'ahead' })
  const behind = await emitEvent(ctx, vaultId, { event: 'behind' })
  expect(behind.timestamp).toBe(ahead.toISOString())
})

test.each(['', 'x'.repeat(129), 'vault.sealed', 'vault.anything', 'document.added', 'file.added', 'file.deleted'])(
  'nobody emits an event named %j',
  async (event) => {
    const org = await stage.world.organisation('pro')
    const id = await stage.vault(org)
    const refused = await stage.call(org, 'POST', `/vaults/${id}/emit`, { event })
    expect([refused.status, codeOf(refused)]).toEqual([422, 'validation-error'])
  },
)

test('a vault refuses an event above its limit', async () => {
  const org = await stage.world.organisation('pro')
  const id = await stage.vault(org)
  await stage.world.database.db.run(sql`update vaults set event_count = 1000000 where id = ${id}`)
  const refused = await stage.call(org, 'POST', `/vaults/${id}/emit`, { event: 'one more' })
  expect([refused.status, codeOf(refused), refused.body.limit]).toEqual([422, 'events-per-vault-exceeded', 1_000_000])
  const document = { name: 'a', data: {} }
  for (const [verb, body] of [['documents', document] as const, ['extend', { ttl: '1h' }] as const])
    expect(codeOf(await stage.call(org, 'POST', `/vaults/${id}/${verb}`, body))).toBe('events-per-vault-exceeded')
  expect((await stage.call(org, 'POST', `/vaults/${id}/seal`, {})).status).toBe(200)
})

test('deleting a vault is 204 and deletes all of it, also if sealed or persisted; again it is 404', async () => {
  const org = await stage.world.organisation('pro')
  for (const acts of [[], ['seal'], ['persist'], ['persist', 'seal']]) {
    const id = await stage.vault(org)
    const made = await stage.call(org, 'POST', `/vaults/${id}/documents`, { name: 'a', data: { a: 1 } })
    for (const act of acts) await stage.call(org, 'POST', `/vaults/${id}/${act}`, {})
    expect((await stage.call(org, 'DELETE', `/vaults/${id}`)).status).toBe(204)
    expect(codeOf(await stage.call(org, 'DELETE', `/vaults/${id}`))).toBe('vault-not-found')
    expect(codeOf(await stage.call(org, 'GET', `/vaults/${id}/documents/${made.body.id}`))).toBe('vault-not-found')
    await stage.deleteContents()
    expect(await streamOf(stage.world, id)).toEqual([])
    const log = (await stage.call(org, 'GET', '/organisations/current/audit-log?limit=1')).list
    expect(log).toEqual([expect.objectContaining({ action: 'vaults.delete', target: id })])
  }
  expect(await countersOf(stage.world, org)).toEqual({ activeVaults: 0, persistedVaults: 0, storageBytes: 0 })
  expect((await reportOf(stage.world, org)).filter(({ type }) => type === 'vault.expired')).toEqual([])
})

test('the blobs of a deleted vault’s files are queued for deletion with the files', async () => {
  const org = await stage.world.organisation('pro')
  const id = await stage.vault(org)
  const { db } = stage.world.database
  await db.run(sql`
    insert into vault_files (vault_id, id, organisation_id, environment, name, mime_type, size, sha256, blob_key, created_at)
    values (${id}, 'fil_01h455vb4pex5vsknk084sn02q', ${org.id}, 'test', 'a', 'text/plain', 5, 'ab', 'blob-one', ${stage.now()})`)
  await db.run(sql`update vaults set file_count = 1, bytes = 5 where id = ${id}`)
  await stage.call(org, 'DELETE', `/vaults/${id}`)
  await stage.deleteContents()
  expect(await db.run(sql`select 1 from blob_deletions where blob_key = 'blob-one'`)).toBe(1)
})

test('no call reaches another organisation’s vault', async () => {
  const [org, other] = [await stage.world.organisation(), await stage.world.organisation()]
  const id = await stage.vault(org)
  const made = await stage.call(org, 'POST', `/vaults/${id}/documents`, { name: 'a', data: {} })
  for (const key of [org.liveKey, other.testKey, other.liveKey]) {
    for (const [method, path, body] of [
      ['GET', ''],
      ['GET', `/documents/${made.body.id}`],
      ['GET', '/proof'],
      ['POST', '/documents', { name: 'b', data: {} }],
      ['POST', '/emit', { event: 'progress' }],
      ['POST', '/extend', { ttl: '1h' }],
      ['POST', '/persist'],
      ['POST', '/seal', {}],
      ['DELETE', ''],
    ] as const) {
      const theirs = await stage.world.call(key, method, `/vaults/${id}${path}`, body)
      const never = await stage.world.call(key, method, `/vaults/${anywhere}${path}`, body)
      const { requestId: _, ...problem } = theirs.body
      expect(never.body).toMatchObject(problem)
      expect([theirs.status, codeOf(theirs)]).toEqual([404, 'vault-not-found'])
    }
    expect((await stage.world.call(key, 'GET', '/vaults')).list).toEqual([])
  }
  expect((await stage.call(org, 'GET', `/vaults/${id}`)).body).toMatchObject({ status: 'active', eventCount: 2 })
})
