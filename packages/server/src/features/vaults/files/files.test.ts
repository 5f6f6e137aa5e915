import { createHash, randomBytes } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { type FormPart, formOf, formType, hangingUpload, upload } from '../../../../test/files/uploads.ts'
import { aVaultStage, countersOf, hourMs, streamOf, type VaultStage } from '../../../../test/stories/vaults-stage.ts'
import { type Answer, codeOf, countByStatus, type Org } from '../../../../test/world.ts'
import { sql } from '../../../platform/db/db.ts'
import { systemCtx } from '../../../platform/work/runner.ts'
import { sweepFiles } from './index.ts'

let stage: VaultStage
const content = randomBytes(100_000)
const sha256 = createHash('sha256').update(content).digest('hex')
const mebibyte = 2 ** 20

beforeAll(async () => {
  stage = await aVaultStage()
})
afterAll(() => stage?.world.stop())

/** An organisation, a vault of it, and ways to fill it. */
async function aVault(plan: 'hobby' | 'pro' | 'enterprise' = 'enterprise') {
  const org = await stage.world.organisation(plan)
  const vaultId = await stage.vault(org)
  return {
    org,
    vaultId,
    send: (part: Partial<FormPart> = {}, headers: Record<string, string> = {}) =>
      sendTo(org, vaultId, formOf({ filename: 'report.bin', content, ...part }), headers),
    sendRaw: (body: Uint8Array<ArrayBuffer>, headers: Record<string, string> = {}) =>
      sendTo(org, vaultId, body, headers),
    state: async () => (await stage.call(org, 'GET', `/vaults/${vaultId}`)).body,
  }
}

function sendTo(org: Org, vaultId: string, body: Uint8Array<ArrayBuffer>, headers: Record<string, string> = {}) {
  return upload(stage.world.base, { key: org.testKey, vaultId, body, headers })
}

function download(org: Org, vaultId: string, fileId: unknown, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(`${stage.world.base}/vaults/${vaultId}/files/${fileId}`, {
    headers: { authorization: `Bearer ${org.testKey}`, ...headers },
  })
}

async function bytesOf(response: Response): Promise<Buffer> {
  return Buffer.from(await response.arrayBuffer())
}

const sweep = () => sweepFiles.run(systemCtx(stage.world.server.deps))

/** How many blobs the store holds, how many uploads are under way, and how many blobs wait to be deleted. */
async function storeOf(): Promise<Readonly<Record<'blobs' | 'uploads' | 'deletions', number>>> {
  const { db, blobs } = stage.world.server.deps
  let stored = 0
  for await (const keys of blobs.list(new Date('9999-01-01'))) stored += keys.length
  const count = (from: 'vault_uploads' | 'blob_deletions') =>
    db.one(
      z.object({ count: z.bigint().transform(Number) }),
      from === 'vault_uploads'
        ? sql`select count(*) as count from vault_uploads`
        : sql`select count(*) as count from blob_deletions`,
    )
  return {
    blobs: stored,
    uploads: (await count('vault_uploads')).count,
    deletions: (await count('blob_deletions')).count,
  }
}

test('a file goes into a vault and comes out byte for byte, with its record, its event and its bytes counted', async () => {
  const { org, vaultId, send, state } = await aVault()
  const added = await send({ filename: 'Zürich 東京.pdf', type: 'application/pdf' })
  expect(added.status).toBe(201)
  expect(added.body).toEqual({
    id: expect.stringMatching(/^fil_[0-9a-z]{26}$/),
    name: 'Zürich 東京.pdf',
    mimeType: 'application/pdf',
    size: content.length,
    sha256,
    url: expect.stringContaining(`http://purser.test/vaults/${vaultId}/files/`),
    createdAt: stage.now().toISOString(),
  })
  expect(await state()).toMatchObject({ files: [{ ...added.body, url: expect.any(String) }], eventCount: 2 })
  const { id: fileId, name, mimeType, size } = added.body
  expect((await streamOf(stage.world, vaultId)).at(-1)?.event).toMatchObject({
    type: 'file.added',
    payload: { fileId, name, mimeType, size, sha256 },
  })
  expect(await countersOf(stage.world, org)).toMatchObject({ storageBytes: content.length })
  const got = await download(org, vaultId, fileId)
  expect(got.status).toBe(200)
  expect((await bytesOf(got)).equals(content)).toBe(true)
})

test('a file is sent as an attachment that no browser shows or guesses at, with its tag and its digests', async () => {
  const { org, vaultId, send } = await aVault()
  const { body } = await send({ filename: 'x%22.html', type: 'text/html; charset=utf-8' })
  const { headers } = await download(org, vaultId, body.id)
  const digest = `sha-256=:${createHash('sha256').update(content).digest('base64')}:`
  expect(Object.fromEntries(headers)).toMatchObject({
    'content-type': 'text/html',
    'content-length': String(content.length),
    'content-disposition': `attachment; filename="x_.html"; filename*=UTF-8''x%22.html`,
    'x-content-type-options': 'nosniff',
    'content-security-policy': "default-src 'none'; sandbox",
    'cache-control': 'private, no-cache',
    'accept-ranges': 'bytes',
    etag: `"${sha256}"`,
    'content-digest': digest,
    'repr-digest': digest,
    'x-request-id': expect.stringMatching(/^req_/),
  })
})

test('a part of a file is sent as asked, the whole where If-Range names another content, and nothing to who has it', async () => {
  const { org, vaultId, send } = await aVault()
  const { body } = await send()
  const get = (headers: Record<string, string>) => download(org, vaultId, body.id, headers)
  const cases = [
    ['bytes=0-0', 0, 1],
    ['bytes=10-19', 10, 20],
    ['bytes=99990-', 99_990, 100_000],
    ['bytes=-5', 99_995, 100_000],
    ['bytes=99999-200000', 99_999, 100_000],
  ] as const
  for (const [range, from, to] of cases) {
    const part = await get({ range, 'if-range': `"${sha256}"` })
    expect([part.status, part.headers.get('content-range'), part.headers.get('content-length')]).toEqual([
      206,
      `bytes ${from}-${to - 1}/100000`,
      String(to - from),
    ])
    expect(part.headers.get('content-digest')).toBeNull()
    expect((await bytesOf(part)).equals(content.subarray(from, to))).toBe(true)
  }
  const old = await get({ range: 'bytes=0-0', 'if-range': `"${'0'.repeat(64)}"` })
  expect([old.status, (await bytesOf(old)).length]).toEqual([200, content.length])
  const nonsense = await get({ range: 'bytes=z' })
  expect([nonsense.status, (await bytesOf(nonsense)).length]).toEqual([200, content.length])
  const known = await get({ 'if-none-match': `"${sha256}"` })
  expect([known.status, known.headers.get('etag'), (await bytesOf(known)).length]).toEqual([304, `"${sha256}"`, 0])
  const outside = await get({ range: 'bytes=100000-' })
  expect([outside.status, outside.headers.get('content-range')]).toEqual([416, 'bytes */100000'])
  expect(await outside.json()).toMatchObject({
    type: 'http://purser.test/problems/range-not-satisfiable',
    size: 100_000,
  })
})

test('an empty file is a file', async () => {
  const { org, vaultId, send } = await aVault()
  const { status, body } = await send({ content: '' })
  expect([status, body.size]).toEqual([201, 0])
  expect((await bytesOf(await download(org, vaultId, body.id))).length).toBe(0)
  expect((await download(org, vaultId, body.id, { range: 'bytes=0-0' })).status).toBe(416)
})

test.each([
  ['../../../etc/passwd', 'passwd'],
  ['C:\\\\Users\\\\me\\\\a.txt', 'a.txt'],
  ['say %22hi%22.txt', 'say "hi".txt'],
  ['say \\"hi\\".txt', 'say "hi".txt'],
  ['100%25.txt', '100%25.txt'],
  ['a;b=c, d.txt', 'a;b=c, d.txt'],
  ['\u202egnp.exe', '\u202egnp.exe'],
])('a form that names its file %j gives a file called %j', async (filename, name) => {
  const { send } = await aVault()
  expect((await send({ filename })).body.name).toBe(name)
})

test.each([
  ['no name', { filename: undefined }],
  ['an empty name', { filename: '' }],
  ['a name of dots', { filename: 'a/..' }],
  ['a line end in its name', { filename: 'a%0d%0ab.txt' }],
  ['a tab in its name', { filename: 'a\tb.txt' }],
  ['a name of 10,000 characters', { filename: 'x'.repeat(10_000) }],
  ['another field', { field: 'attachment' }],
])('a form with %s is refused with what is wrong, and nothing is kept', async (_, part) => {
  const { send, state } = await aVault()
  const refused = await send(part)
  expect([refused.status, codeOf(refused)]).toEqual([422, 'validation-error'])
  expect(refused.body.errors).toEqual([
    { path: expect.stringMatching(/^\/(file|attachment)$/), message: expect.any(String) },
  ])
  expect(await state()).toMatchObject({ files: [], eventCount: 1 })
})

test('a form must hold one file and nothing else', async () => {
  const { sendRaw, state } = await aVault()
  const file = { filename: 'a', content }
  for (const parts of [
    [file, file],
    [file, { field: 'note', content: 'x' }],
    [{ field: 'note', content: 'x' }, file],
    [],
  ]) {
    const refused = await sendRaw(formOf(...parts))
    expect([refused.status, codeOf(refused)]).toEqual([422, 'validation-error'])
  }
  expect(await state()).toMatchObject({ files: [], eventCount: 1 })
})

test('a body that is no form, or not a whole one, is refused in its own words, and nothing is kept', async () => {
  const { sendRaw, state } = await aVault()
  const whole = formOf({ filename: 'a', content })
  const cases: readonly (readonly [Uint8Array<ArrayBuffer>, string, number, string])[] = [
    [whole, 'application/json', 415, 'unsupported-media-type'],
    [whole, 'multipart/form-dataX; boundary=x', 415, 'unsupported-media-type'],
    [whole, 'multipart/form-data', 400, 'malformed-multipart'],
    [whole, `multipart/form-data; boundary=${'b'.repeat(100)}`, 400, 'malformed-multipart'],
    [whole, 'multipart/form-data; boundary=other', 400, 'malformed-multipart'],
    [whole.slice(0, -4), formType, 400, 'malformed-multipart'],
    [whole.slice(0, 5_000), formType, 400, 'malformed-multipart'],
    [whole.slice(0, 30), formType, 400, 'malformed-multipart'],
    [new Uint8Array(0), formType, 400, 'malformed-multipart'],
    [
      new Uint8Array(Buffer.from(Buffer.from(whole).toString('latin1').replace('form-data', 'attachment'), 'latin1')),
      formType,
      400,
      'malformed-multipart',
    ],
  ]
  for (const [body, type, status, code] of cases) {
    const refused = await sendRaw(body, { 'content-type': type })
    expect([refused.status, codeOf(refused)], `${type} ${body.length}`).toEqual([status, code])
  }
  expect(await state()).toMatchObject({ files: [], eventCount: 1 })
})

test('a Content-Digest of the file, of the whole body or of the part is verified; on a mismatch nothing is kept', async () => {
  const { org, send, sendRaw, state } = await aVault()
  const field = (bytes: Uint8Array, name = 'sha256') =>
    `${name === 'sha256' ? 'sha-256' : 'sha-512'}=:${createHash(name).update(bytes).digest('base64')}:`
  const body = formOf({ filename: 'report.bin', content })
  for (const good of [field(content), field(body), field(content, 'sha512'), `${field(content)}, md5=:AAAA:`])
    expect((await send({}, { 'content-digest': good })).status, good).toBe(201)
  expect((await send({ headers: [`Content-Digest: ${field(content)}`] })).status).toBe(201)
  const before = await countersOf(stage.world, org)

  const other = field(randomBytes(8))
  for (const refused of [
    await send({}, { 'content-digest': other }),
    await send({}, { 'content-digest': `${field(content)}, ${field(body, 'sha512')}` }),
    await send({ headers: [`Content-Digest: ${other}`] }),
    await send({ headers: [`Content-Digest: ${other}`] }, { 'content-digest': field(content) }),
  ])
    expect([refused.status, codeOf(refused)]).toEqual([422, 'digest-mismatch'])
  for (const refused of [
    await sendRaw(body, { 'content-digest': 'sha-256=x' }),
    await send({ headers: ['Content-Digest: x'] }),
  ])
    expect([refused.status, codeOf(refused), JSON.stringify(refused.body.errors)]).toEqual([
      422,
      'validation-error',
      expect.stringContaining('/Content-Digest'),
    ])
  expect((await state()).files).toHaveLength(5)
  expect(await countersOf(stage.world, org)).toEqual(before)
})

test('a file over the plan’s size is refused at once when it says so, and while it comes when it does not', async () => {
  const { org, vaultId, state } = await aVault('hobby')
  const most = 10 * mebibyte
  const exactly = await sendTo(org, vaultId, formOf({ filename: 'a', content: Buffer.alloc(most) }))
  expect([exactly.status, exactly.body.size]).toEqual([201, most])
  const larger = formOf({ filename: 'a', content: Buffer.alloc(most + 1) })
  const much = formOf({ filename: 'a', content: Buffer.alloc(most + mebibyte) })
  for (const body of [larger, much]) {
    const refused = await sendTo(org, vaultId, body)
    expect([refused.status, codeOf(refused), refused.body.limit]).toEqual([413, 'file-too-large', most])
  }
  const unannounced = await fetch(`${stage.world.base}/vaults/${vaultId}/files`, {
    method: 'POST',
    headers: { authorization: `Bearer ${org.testKey}`, 'content-type': formType },
    body: new Blob([much]).stream(),
    duplex: 'half',
  })
  expect(unannounced.status).toBe(413)
  expect((await state()).files).toHaveLength(1)
})

test('files per vault and storage are limited with the document’s limit error', async () => {
  const { org, vaultId, send } = await aVault('hobby')
  const limited = (answer: Answer) => [answer.status, codeOf(answer), answer.body.limit, answer.body.current]
  for (let count = 0; count < 5; count++) expect((await send({ content: 'x' })).status).toBe(201)
  const sixth = await send({ content: 'x' })
  expect(limited(sixth)).toEqual([422, 'files-per-vault-exceeded', 5, 5])
  expect(sixth.body).toMatchObject({
    title: 'Plan Limit Reached',
    upgradeUrl: 'http://dashboard.test/settings/billing',
  })

  const storage = 500 * mebibyte
  await fillStorage(org, storage - 10)
  const other = await stage.vault(org)
  expect(limited(await sendTo(org, other, formOf({ filename: 'a', content: 'x'.repeat(11) })))).toEqual([
    429,
    'storage-quota-exceeded',
    storage,
    storage - 10,
  ])
  expect((await sendTo(org, other, formOf({ filename: 'a', content: 'x'.repeat(10) }))).status).toBe(201)
  expect(limited(await sendTo(org, other, formOf({ filename: 'a', content: 'x' })))).toEqual([
    429,
    'storage-quota-exceeded',
    storage,
    storage,
  ])
  expect((await stage.call(org, 'DELETE', `/vaults/${vaultId}`)).status).toBe(204)
})

/** As if other vaults held them. */
async function fillStorage(org: Org, used: number): Promise<void> {
  await stage.world.database.db.run(sql`
    insert into usage_counters (organisation_id, environment, kind, period, used) values (${org.id}, 'test', 'storageBytes', 'all', ${used})
    on conflict (organisation_id, environment, kind, period) do update set used = excluded.used`)
}

test('of twenty uploads at once as many are kept as fit, by number and by storage, and only they are counted', async () => {
  const byNumber = await aVault('hobby')
  const answers = await Promise.all(Array.from({ length: 20 }, () => byNumber.send({ content: 'x'.repeat(1_000) })))
  expect(countByStatus(answers)).toEqual({ 201: 5, 422: 15 })
  expect((await byNumber.state()).files).toHaveLength(5)
  expect((await countersOf(stage.world, byNumber.org)).storageBytes).toBe(5_000)

  const byStorage = await aVault('pro')
  const storage = 10 * 2 ** 30
  await fillStorage(byStorage.org, storage - 7_500)
  const others = await Promise.all(Array.from({ length: 20 }, () => byStorage.send({ content: 'x'.repeat(1_000) })))
  expect(countByStatus(others)).toEqual({ 201: 7, 429: 13 })
  expect((await byStorage.state()).files).toHaveLength(7)
  expect((await countersOf(stage.world, byStorage.org)).storageBytes).toBe(storage - 500)
  await sweep()
  expect(await storeOf()).toMatchObject({ uploads: 0, deletions: 0 })
})

test('a file is deleted with its bytes, is told of, and gives its storage back; twice is 404', async () => {
  const { org, vaultId, send, state } = await aVault()
  const { body } = await send()
  await sweep()
  const before = await storeOf()
  const path = `/vaults/${vaultId}/files/${body.id}`
  expect((await stage.call(org, 'DELETE', path)).status).toBe(204)
  for (const method of ['GET', 'DELETE']) expect(codeOf(await stage.call(org, method, path))).toBe('file-not-found')
  expect(await state()).toMatchObject({ files: [], eventCount: 3 })
  expect((await streamOf(stage.world, vaultId)).at(-1)?.event).toMatchObject({
    type: 'file.deleted',
    payload: { fileId: body.id, name: 'report.bin' },
  })
  expect((await countersOf(stage.world, org)).storageBytes).toBe(0)
  await sweep()
  expect(await storeOf()).toEqual({ ...before, blobs: before.blobs - 1 })
})

test('a sealed vault takes no file and loses none, and its files can be read', async () => {
  const { org, vaultId, send } = await aVault()
  const { body } = await send()
  expect((await stage.call(org, 'POST', `/vaults/${vaultId}/seal`, {})).status).toBe(200)
  const deleted = await stage.call(org, 'DELETE', `/vaults/${vaultId}/files/${body.id}`)
  for (const refused of [await send(), deleted])
    expect([refused.status, codeOf(refused)]).toEqual([409, 'vault-sealed'])
  expect((await bytesOf(await download(org, vaultId, body.id))).equals(content)).toBe(true)
})

test('a vault that is sealed while a file comes in is sealed without it', async () => {
  const { org, vaultId, state } = await aVault()
  const body = formOf({ filename: 'late.bin', content })
  const socket = await hangingUpload(stage.world.base, { key: org.testKey, vaultId, body }, 50_000)
  await expect.poll(async () => (await storeOf()).uploads).toBe(1)
  expect((await stage.call(org, 'POST', `/vaults/${vaultId}/seal`, {})).status).toBe(200)
  const answered = new Promise<string>((resolve) => socket.once('data', (data) => resolve(String(data))))
  socket.write(body.subarray(50_000))
  expect(await answered).toMatch(/^HTTP\/1\.1 409 .*vault-sealed/s)
  socket.destroy()
  expect(await state()).toMatchObject({ files: [], manifest: { items: [] } })
  expect((await countersOf(stage.world, org)).storageBytes).toBe(0)
  await sweep()
  expect(await storeOf()).toMatchObject({ uploads: 0, deletions: 0 })
})

test('another organisation’s vault and file are answered like those that never were', async () => {
  const { org, vaultId, send } = await aVault()
  const { body } = await send()
  const [other, own] = [await stage.world.organisation(), await aVault()]
  const places = [
    [other, vaultId, body.id],
    [other, 'vlt_01h455vb4pex5vsknk084sn02q', body.id],
  ] as const
  for (const [who, where, file] of places) {
    expect(codeOf(await sendTo(who, where, formOf({ filename: 'a', content })))).toBe('vault-not-found')
    for (const method of ['GET', 'DELETE'])
      expect(codeOf(await stage.call(who, method, `/vaults/${where}/files/${file}`))).toBe('vault-not-found')
  }
  expect(codeOf(await stage.call(own.org, 'GET', `/vaults/${own.vaultId}/files/${body.id}`))).toBe('file-not-found')
  const live = await upload(stage.world.base, { key: org.liveKey, vaultId, body: formOf({ filename: 'a', content }) })
  expect(codeOf(live)).toBe('vault-not-found')
})

test('an upload that breaks off half way leaves no file and no count, and the sweep removes what had come', async () => {
  const { org, vaultId, state } = await aVault()
  await sweep()
  const before = await storeOf()
  const body = formOf({ filename: 'half.bin', content: Buffer.alloc(4 * mebibyte) })
  const socket = await hangingUpload(stage.world.base, { key: org.testKey, vaultId, body }, 2 * mebibyte)
  await expect.poll(async () => (await storeOf()).uploads).toBe(1)
  socket.destroy()
  await expect.poll(async () => (await storeOf()).uploads).toBe(0)
  expect(await state()).toMatchObject({ files: [], eventCount: 1 })
  expect((await countersOf(stage.world, org)).storageBytes).toBe(0)
  await sweep()
  expect(await storeOf()).toEqual(before)
})

test('an upload that takes longer than an hour is given up: told so at its end, and nothing is kept', async () => {
  const { org, vaultId, state } = await aVault()
  await sweep()
  const before = await storeOf()
  const body = formOf({ filename: 'slow.bin', content })
  const socket = await hangingUpload(stage.world.base, { key: org.testKey, vaultId, body }, 50_000)
  await expect.poll(async () => (await storeOf()).uploads).toBe(1)
  stage.pass(hourMs + 1)
  await sweep()
  expect(await storeOf()).toEqual(before)
  const answered = new Promise<string>((resolve) => socket.once('data', (data) => resolve(String(data))))
  socket.write(body.subarray(50_000))
  expect(await answered).toMatch(/^HTTP\/1\.1 408 .*request-timeout/s)
  socket.destroy()
  expect(await state()).toMatchObject({ files: [] })
  await sweep()
  expect(await storeOf()).toEqual(before)
})

test('the files of a vault that is deleted or expires are deleted from the store', async () => {
  await sweep()
  const before = await storeOf()
  const [one, two] = [await aVault(), await aVault()]
  await one.send()
  await two.send()
  expect((await storeOf()).blobs).toBe(before.blobs + 2)
  await stage.call(one.org, 'DELETE', `/vaults/${one.vaultId}`)
  await sweep()
  expect((await storeOf()).blobs).toBe(before.blobs + 1)
  const short = await stage.vault(one.org, { ttl: '5m' })
  await sendTo(one.org, short, formOf({ filename: 'a', content }))
  stage.pass(300_000)
  expect(codeOf(await stage.call(one.org, 'GET', `/vaults/${short}`))).toBe('vault-not-found')
  await stage.follow()
  await sweep()
  expect(await storeOf()).toEqual({ ...before, blobs: before.blobs + 1 })
  expect((await countersOf(stage.world, one.org)).storageBytes).toBe(0)
})

test('a zip bomb is bytes', async () => {
  const { org, vaultId, send } = await aVault()
  const bomb = Buffer.from('504b0304', 'hex')
  const { body } = await send({ filename: 'bomb.zip', type: 'application/zip', content: bomb })
  expect(body).toMatchObject({ size: 4, mimeType: 'application/zip' })
  expect((await bytesOf(await download(org, vaultId, body.id))).equals(bomb)).toBe(true)
})
